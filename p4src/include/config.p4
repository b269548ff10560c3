// What is fixed when the program is built; override with -DNAME=VALUE.
#ifndef CATCHMENT_CONFIG_P4
#define CATCHMENT_CONFIG_P4

// 32-bit values in a vector: 8, 64, 256 or 1024
#ifndef LANES
#define LANES 64
#endif

// vectors that all jobs together may have in flight
#ifndef SLOTS
#define SLOTS 1024
#endif

// workers (or child racks) of one job, at most 64
#ifndef MAX_WORKERS
#define MAX_WORKERS 64
#endif

// streams at the same time
#ifndef JOBS
#define JOBS 64
#endif

// With -DTAGS=1 luwu.p4 takes frames with tags (docs/explanation/tags.md); without it the program has nothing of them.

#endif  // CATCHMENT_CONFIG_P4
