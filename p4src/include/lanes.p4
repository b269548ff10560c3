// The generated lanes for the number that this build has.
#ifndef CATCHMENT_LANES_CHOICE_P4
#define CATCHMENT_LANES_CHOICE_P4

#if LANES == 8
#include "../../wire/generated/lanes_8.p4"
#elif LANES == 64
#include "../../wire/generated/lanes_64.p4"
#elif LANES == 256
#include "../../wire/generated/lanes_256.p4"
#elif LANES == 1024
#include "../../wire/generated/lanes_1024.p4"
#else
#error "LANES must be 8, 64, 256 or 1024"
#endif

#endif  // CATCHMENT_LANES_CHOICE_P4
