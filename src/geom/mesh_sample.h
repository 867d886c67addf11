#ifndef SK_GEOM_MESH_SAMPLE_H
#define SK_GEOM_MESH_SAMPLE_H
typedef struct sk_mesh_sample sk_mesh_sample;
#endif
