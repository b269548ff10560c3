/* Collectives through the switch, for C and whatever can call C (docs/reference/collectives.md).
 *
 * A communicator is one rank of an all-reduce job.  All ranks call the same operations in the same
 * order.  Every function may be called from any thread. */
#ifndef CATCHMENT_COLLECTIVES_H
#define CATCHMENT_COLLECTIVES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a call, a struct or a value changes its meaning. */
#define CATCHMENT_COLLECTIVES_ABI 17
#define CATCHMENT_COLLECTIVES_PUBLIC __attribute__((visibility("default")))

/* A communicator: one rank of a job, on one network or on several rails. */
typedef struct catchment_group catchment_group;
/* An operation that was started. */
typedef struct catchment_work catchment_work;

/* What an operation does. */
enum catchment_kind {
  CATCHMENT_ALL_REDUCE = 1,     /* every rank gets what all ranks' elements become */
  CATCHMENT_REDUCE = 2,         /* `root` alone gets it */
  CATCHMENT_BROADCAST = 3,      /* every rank gets `root`'s bytes */
  CATCHMENT_BARRIER = 4,        /* done when all ranks have called it; moves nothing */
  CATCHMENT_REDUCE_SCATTER = 5, /* every rank gets its part of what all become */
  CATCHMENT_ALL_GATHER = 6,     /* every rank gets the parts of all */
  /* Moves nothing: done when all ranks want the same, `elements` and `tag`, to go another way. */
  CATCHMENT_BESIDE = 7,
  /* Moves nothing: the operation that the other ranks have called fails there as a mismatch. */
  CATCHMENT_REFUSED = 8
};
/* What becomes of the ranks' elements. */
enum catchment_reduction {
  CATCHMENT_SUM = 0,  /* the sum */
  CATCHMENT_MEAN = 1, /* the sum divided by the ranks; floats only */
  CATCHMENT_MAX = 2   /* the largest */
};
/* As DataType in wire/frame.toml; BYTES for broadcast and all_gather. */
enum catchment_type {
  CATCHMENT_BYTES = 0, /* for broadcast and all_gather */
  CATCHMENT_INT32 = 1, /* sums wrap in 32 bits */
  CATCHMENT_FP32 = 2,  /* IEEE 754 binary32 */
  CATCHMENT_FP16 = 3,  /* IEEE 754 binary16 */
  CATCHMENT_BF16 = 4   /* the upper half of a binary32 */
};
/* BLOCK: negotiated; FIXED: `exponent`, which may cut; DELAYED: negotiated, and `exponent` is used
 * if it is enough; WHOLE: negotiated, one for all vectors, at least `exponent` (-128: what the
 * arrays need), which a rank that sums a part of its array takes from the whole of it.  Only for
 * sums and means of floats. */
enum catchment_scaling {
  CATCHMENT_NONE = 0,    /* of what is no sum or mean of floats */
  CATCHMENT_BLOCK = 1,   /* negotiated, for each vector */
  CATCHMENT_FIXED = 2,   /* `exponent`, which may cut */
  CATCHMENT_DELAYED = 3, /* negotiated, and `exponent` is used if it is enough */
  CATCHMENT_WHOLE = 4    /* negotiated, one for all vectors */
};

/* Who adds up the vectors: a switch, or the ranks in a ring of TCP (or MPTCP) connections. There
 * local_ip and local_port are where the rank before connects to, and switch_ip and switch_port
 * where the next rank listens. */
enum catchment_way {
  CATCHMENT_SWITCH = 0,    /* at switch_ip and switch_port, or behind shm_path */
  CATCHMENT_TCP_RING = 1,  /* TCP */
  CATCHMENT_MPTCP_RING = 2 /* Multipath TCP, where the kernel has it */
};

/* Of a key for tags. */
enum { CATCHMENT_KEY_BYTES = 16 /* so many bytes it has */ };

/* What a rank must know to take part in a job; the control plane's description of the job has it.
 * Zeros are no defaults unless they are said to be. */
typedef struct catchment_group_config {
  uint32_t gen;          /* of the job's stream */
  uint32_t ranks;        /* of the job, this one among them */
  uint32_t rank;         /* from 0 */
  uint32_t slots;        /* T of the job, a power of two */
  uint32_t window;       /* at most slots; 0: slots */
  uint32_t base_seq;     /* sequence number of the stream's first vector */
  uint32_t lanes;        /* of the switch program, at least two for each rank */
  uint16_t local_port;   /* UDP */
  uint16_t switch_port;  /* UDP */
  const char* local_ip;  /* dotted, as the job's entries have it */
  const char* switch_ip; /* dotted */
  const char* shm_path;  /* NULL: UDP */
  int64_t attach_ns;     /* how long to wait for a shared-memory port */
  int64_t timeout_ns;    /* without progress, after which pending operations fail */
  int64_t spin_ns;       /* how long a thread that waits looks before it sleeps */
  int64_t absent_ns; /* how long the switch may be gone (shared memory), or answer nothing (UDP),
                        while operations are pending; 0: as long as their timeout */
  const char* switch_name; /* for messages; NULL: its address alone */
  int32_t way;             /* catchment_way */
  int32_t packed;          /* 1: the job's stream may have packed lanes; 0: it has 32-bit lanes */
  const uint8_t* key; /* CATCHMENT_KEY_BYTES, under which frames carry tags; NULL: they have none */
  uint64_t key_frames; /* vectors that the key serves for; 0: as many as it may */
  uint32_t place; /* 1 + the worker index that frames say, where that is not the rank; 0: it is */
  uint32_t term_bits; /* keys follow one another: each serves for 2^term_bits vectors, and `key` for
                         the first two such terms; 0: `key` serves for key_frames, and no other comes */
} catchment_group_config;

/* One of several networks between the same ranks (docs/explanation/rails.md). */
typedef struct catchment_rail {
  const char* name;              /* for messages */
  catchment_group_config config; /* this rank on this network */
  uint32_t bytes_per_ms;         /* the nominal rate; 0: unknown */
  /* The stream on which the ranks agree about rails that fail, and the stream that carries this
   * rail's operations over each rail while it is broken, `count` of them (its own is not looked
   * at).  NULL: a rail that fails ends the communicator. */
  const catchment_group_config* control;
  const catchment_group_config* spares; /* see above */
} catchment_rail;
/* Of one communicator. */
enum { CATCHMENT_MOST_RAILS = 8 /* so many rails a communicator has at most */ };
/* How an operation is split over the rails. */
enum catchment_rail_policy {
  CATCHMENT_RAILS_WATERFILL = 0, /* as measured, so that all rails end together */
  CATCHMENT_RAILS_PAPER = 1,     /* Nezha's equations */
  CATCHMENT_RAILS_FIXED = 2,     /* by the nominal rates */
  CATCHMENT_RAILS_SLICES = 3,    /* slices in turn */
  CATCHMENT_RAILS_SINGLE = 4     /* the best rail alone */
};
/* What it takes to use a rail. */
typedef struct catchment_rail_cost {
  uint32_t start_ns;            /* before the first byte */
  uint32_t bytes_per_ms;        /* 0: not to be used */
  uint32_t nominal;             /* in any unit that the rails share */
  uint32_t beside_start_ns;     /* as start_ns, while other rails carry the other parts */
  uint32_t beside_bytes_per_ms; /* likewise; 0: as alone */
} catchment_rail_cost;
/* The part of an operation that goes over one rail. */
typedef struct catchment_rail_share {
  uint32_t rail;     /* its index */
  uint64_t first;    /* elements */
  uint64_t elements; /* how many of them */
} catchment_rail_share;
/* What a rail has done so far. */
typedef struct catchment_rail_state {
  catchment_rail_cost cost; /* of 4 MiB of the wire, as all ranks have measured it */
  uint64_t parts;           /* of operations, that went over it */
  uint64_t bytes;           /* of the wire, one way */
  uint32_t health;          /* enum catchment_rail_health */
  uint32_t carrier;         /* the rail that its operations go over */
  uint64_t incidents;       /* how often it was found broken */
  int64_t last_incident_ns; /* from the last sum to when all knew, of the last one */
  uint32_t joined;          /* 0: it has never joined all ranks */
} catchment_rail_state;
/* Whether all ranks use a rail. */
enum catchment_rail_health {
  CATCHMENT_RAIL_UP = 0,       /* it carries its share */
  CATCHMENT_RAIL_DOWN = 1,     /* its operations go over `carrier` */
  CATCHMENT_RAIL_PROBATION = 2 /* it answers again, and is not used yet */
};

/* An operation as a rank calls it. */
typedef struct catchment_call {
  int32_t kind;       /* enum catchment_kind */
  int32_t reduction;  /* enum catchment_reduction */
  int32_t type;       /* enum catchment_type, of the elements */
  int32_t scaling;    /* enum catchment_scaling */
  int32_t exponent;   /* what it means depends on the scaling */
  int32_t root;       /* rank that a reduce goes to or a broadcast comes from */
  int32_t priority;   /* a larger one overtakes */
  uint32_t tag;       /* must be equal on all ranks */
  uint64_t elements;  /* of `source` on each rank; a multiple of the ranks for REDUCE_SCATTER */
  const void* source; /* both stay in place until the operation is done */
  void* target;       /* may be `source`; of parts, this rank's own in the other array; not checked:
                         a result anywhere else in `source` is wrong */
  int64_t timeout_ns; /* 0: the communicator's */
  /* Of all_gather and reduce_scatter, bytes in whole words: rank r's part is `blocks` blocks of
   * `block`, block j at r * step + j * stride of the target (all_gather) or of the source
   * (reduce_scatter); also of the other one where it is the same.  blocks 0: parts are one after
   * the other. */
  uint64_t step;   /* bytes from one rank's first block to the next rank's */
  uint64_t block;  /* bytes */
  uint64_t blocks; /* of each rank's part; 0: parts are one after the other */
  uint64_t stride; /* bytes from one block of a part to the next */
  int32_t packed; /* 1: sums and means of floats travel as 16-bit integers, two in a lane; all ranks
                     give the same */
} catchment_call;

/* How far an operation is. */
enum catchment_progress {
  CATCHMENT_RUNS = 0,      /* or waits for its turn */
  CATCHMENT_SUCCEEDED = 1, /* the result is in its place */
  CATCHMENT_FAILED = 2     /* catchment_work_result() says why */
};

/* How an operation ended, or a communicator. */
typedef struct catchment_result {
  int32_t done;             /* it has ended, well or not */
  int32_t failed;           /* it has ended badly */
  int32_t fatal;            /* the communicator has failed with it */
  int32_t exponent;         /* the largest that was agreed */
  uint64_t peers;           /* bits of the ranks that a failure is about */
  int32_t has_seq;          /* 1: `seq` is known */
  uint32_t seq;             /* sequence number that a failure is about, if has_seq */
  int32_t any_saturated;    /* a rank's values were cut */
  uint64_t vectors;         /* sent, once each */
  uint64_t retransmissions; /* vectors sent again */
  uint64_t saturated;       /* own elements that were cut */
  uint64_t nonfinite;       /* own elements that were NaN or infinite */
  int64_t latency_ns;       /* from the call to the end */
  const char* kind; /* of the failure; these live as long as the work or, of a group, the thread's
                       next call */
  const char* message; /* what was wrong, and where */
  const char* hint;    /* what to do */
} catchment_result;

/* Counters since a communicator was opened. */
typedef struct catchment_group_stats {
  uint64_t frames_sent;           /* of every kind */
  uint64_t frames_received;       /* of every kind */
  uint64_t bytes_sent;            /* UDP payload: of frames, headers and all */
  uint64_t bytes_received;        /* the same */
  uint64_t retransmissions;       /* vectors sent again */
  uint64_t timeouts;              /* of the retransmission timer */
  uint64_t heartbeats_sent;       /* frames without a vector */
  uint64_t heartbeats_received;   /* the switch's minimum of all ranks */
  uint64_t frames_asked_for;      /* sums that later ones have overtaken, and that it asked for */
  uint64_t saturated;             /* own elements that were cut */
  uint64_t nonfinite;             /* own elements that were NaN or infinite */
  uint64_t socket_errors;         /* calls of the network that failed */
  uint64_t rejected;              /* frames that are none of this job's */
  uint64_t in_flight;             /* vectors without their sum, now */
  uint64_t held;                  /* sums that came early, now */
  uint64_t operations;            /* that ended */
  uint64_t round_trip_ns;         /* smoothed */
  uint64_t retransmit_timeout_ns; /* after which a vector is sent again, now */
  uint64_t exponents_guessed;     /* operations whose data left on a guess of E */
  uint64_t exponents_missed;      /* and again, since it was wrong */
  uint64_t forged;                /* of the rejected: without the right tag, in a job with tags */
  uint64_t in_callers;            /* rails whose switch's program it runs itself, now */
} catchment_group_stats;

/* CATCHMENT_COLLECTIVES_ABI of the library: compare it before anything else is called. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_collectives_abi(void);

/* Opens a communicator.  NULL: `error` says why, in up to `error_bytes` with the final zero. */
CATCHMENT_COLLECTIVES_PUBLIC catchment_group* catchment_group_open(
    const catchment_group_config* config, char* error, size_t error_bytes);
/* As catchment_group_open() for ranks with `count` rails; all have the same ranks, lanes and
 * slots.  All ranks give the same rails in the same order and the same policy. */
CATCHMENT_COLLECTIVES_PUBLIC catchment_group* catchment_rails_open(const catchment_rail* rails,
                                                                   uint32_t count, int32_t policy,
                                                                   char* error, size_t error_bytes);
/* What each rail has carried, for up to `room` rails; the version of the table of costs. */
CATCHMENT_COLLECTIVES_PUBLIC uint32_t catchment_rails_states(catchment_group* group,
                                                             catchment_rail_state* states,
                                                             uint32_t room);
/* How an all-reduce of `elements` would be split now: the number of shares, of which up to `room`
 * are written. */
CATCHMENT_COLLECTIVES_PUBLIC uint64_t catchment_rails_shares(catchment_group* group,
                                                             uint64_t elements,
                                                             catchment_rail_share* shares,
                                                             uint64_t room);
/* What the rails, up to `room` of them, cost for an all-reduce of `elements`, as all ranks have
 * measured it. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_rails_costs(catchment_group* group, uint64_t elements,
                                                        catchment_rail_cost* costs, uint32_t room);
/* How `elements` would be split; `together_ns[k - 1]` is what using k rails costs besides.  The
 * number of shares, of which up to `room` are written; 0 when no rail may be used, or the policy or
 * the count is wrong. */
CATCHMENT_COLLECTIVES_PUBLIC uint64_t catchment_rails_split(
    const catchment_rail_cost* rails, const uint32_t* together_ns, uint32_t count, int32_t policy,
    uint64_t elements, catchment_rail_share* shares, uint64_t room);
/* 1 in a process that was forked after the group was opened.  It has neither the group's threads
 * nor its port: operations, also those that were under way, fail with kind `forked`, and freeing
 * gives nothing back. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_group_forked(const catchment_group* group);
/* The UDP port that a group, or its first rail, is bound to. */
CATCHMENT_COLLECTIVES_PUBLIC uint16_t catchment_group_port(const catchment_group* group);
/* The term that all ranks of a group with term_bits have come to, once its older key is not needed
 * any more and the key of the term behind that one is due; 0 until then. */
CATCHMENT_COLLECTIVES_PUBLIC uint64_t catchment_group_key_due(catchment_group* group);
/* The key, of CATCHMENT_KEY_BYTES, of a term, in place of that of the term two before it: once all
 * switches of the job have it.  0 where it is not the one that comes next, which changes nothing. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_group_take_key(catchment_group* group, uint64_t term,
                                                          const uint8_t* key);
/* Queues an operation and sends what can be sent.  Never NULL: one that cannot be is done and
 * failed.  Free it with catchment_work_free(), at any time. */
CATCHMENT_COLLECTIVES_PUBLIC catchment_work* catchment_group_start(catchment_group* group,
                                                                   const catchment_call* call);
/* Whether the communicator has failed, and how (`done` and the counters are 0). */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_group_failure(catchment_group* group,
                                                          catchment_result* result);
/* Fills in the counters. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_group_get_stats(const catchment_group* group,
                                                            catchment_group_stats* stats);
/* Fails what is pending, serves the others for up to `linger_ns` and gives the port back.  The
 * group stays valid. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_group_close(catchment_group* group, int64_t linger_ns);
/* Closes it; works stay valid. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_group_free(catchment_group* group);

/* How far it is once it is done, or `limit_ns` have passed: catchment_progress.  The calling thread
 * runs the protocol meanwhile. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_work_wait(catchment_work* work, int64_t limit_ns);
/* How far it is: catchment_progress.  Runs no protocol. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_work_done(const catchment_work* work);
/* 1: nothing of it was sent, and it now fails on all ranks; 0: it runs to its end. */
CATCHMENT_COLLECTIVES_PUBLIC int catchment_work_cancel(catchment_work* work);
/* How it stands, also before it is done. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_work_result(const catchment_work* work,
                                                        catchment_result* result);
/* Gives it back; the operation itself goes on. */
CATCHMENT_COLLECTIVES_PUBLIC void catchment_work_free(catchment_work* work);

#ifdef __cplusplus
}
#endif

#endif
