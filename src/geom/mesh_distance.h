#ifndef SK_GEOM_MESH_DISTANCE_H
#define SK_GEOM_MESH_DISTANCE_H
typedef struct sk_mesh_distance sk_mesh_distance;
#endif
