/* The plane of a cut-away view, as text: "z>0.4" leaves out what lies beyond 0.4 m along z. */
#ifndef SK_DEFS_CUT_PLANE_H
#define SK_DEFS_CUT_PLANE_H

/* Unit normal, which points to what is left out, and offset (m). Returns 0 if the text is no such plane. */
int sk_cut_plane(const char *text, double plane[4]);

#endif
