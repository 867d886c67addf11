/* 2D and 3D from one source.
 *
 * A file that includes this header is compiled twice, with SELKIE_DIM 2 and 3
 * (see CMakeLists.txt), and wraps the names it exports in SK_DIM():
 * SK_DIM(transfer) is transfer_2d or transfer_3d. Vectors have three components
 * in both; in 2D the third stays zero and loops over SELKIE_DIM leave it out.
 *
 * Blocks are 8x8x8 cells in 3D and 16x16 in 2D.
 */
#ifndef SK_BASE_DIMENSION_H
#define SK_BASE_DIMENSION_H

#if SELKIE_DIM == 2
#define SK_DIM(name) name##_2d
#define SK_BLOCK_LOG 4
#define SK_BLOCK_NZ 1
#define SK_BLOCK_CELLS 256
#define SK_NEIGHBOURS 9 /* 3^SELKIE_DIM, the block itself in the middle */
#define SK_CORNERS 4
#elif SELKIE_DIM == 3
#define SK_DIM(name) name##_3d
#define SK_BLOCK_LOG 3
#define SK_BLOCK_NZ 8
#define SK_BLOCK_CELLS 512
#define SK_NEIGHBOURS 27
#define SK_CORNERS 8
#else
#error "SELKIE_DIM must be 2 or 3"
#endif

#define SK_BLOCK_N (1 << SK_BLOCK_LOG) /* cells along x and y */
#define SK_BLOCK_MASK (SK_BLOCK_N - 1)

#endif
