/* A basis as a file: made once by `selkie basis`, loaded in milliseconds.
 *
 *   offset  bytes
 *        0     96  sk_basis_header
 *       96         lambda of the further modes (1/m2, double), their u, v and omega at the midpoints and their u and v
 * at the nodes ([mode][x][y], double), the names of the flows (64 bytes each), and their coefficients
 *                  ([flow][modes], double)
 *
 * The eigenfunctions in closed form need no more than their number. Numbers have the byte order of the machine. The
 * checksum covers the whole file, and the size of the file follows from the header, so that damage and files
 * that are cut off are found.
 */
#ifndef SK_METHODS_REDUCED_BASIS_FILE_H
#define SK_METHODS_REDUCED_BASIS_FILE_H

#include "methods/reduced/reduced.h"

typedef struct sk_basis_header {
    char magic[8];  /*     "SLKBASE\n" */
    uint32_t order; /*     0x01020304 */
    uint32_t version;
    uint32_t checksum;  /*     of the file, with 0 in its place */
    uint32_t obstacles; /*     CRC-32 of the nodes in obstacles; 0 without */
    double size[2];     /* m   of the box */
    int32_t family[2], cells[2];
    int32_t closed; /*     modes in closed form */
    int32_t extra;  /*     further modes */
    int32_t flows;  /*     that scenes excite by name */
    int32_t are_eigenfunctions;
    int32_t reserved[6];
} sk_basis_header;

/* Writes the basis of a world. */
selkie_code sk_basis_write(const char *path, const sk_reduced *reduced, uint32_t obstacles, selkie_error *error);
/* Makes the basis of a box from a file that fits it. */
selkie_code sk_basis_read(const char *path, sk_reduced *reduced, const sk_reduced_box *box, uint32_t obstacles,
                          sk_memory *memory, selkie_error *error);

/* Reads a file from end to end: whether it is a basis and undamaged, and its header. */
selkie_code sk_basis_check(const char *path, sk_basis_header *header, selkie_error *error);

#endif
