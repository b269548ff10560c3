/* Shared-memory ports of catchment-switch: the peer's side, for C and whatever can call C.
 *
 * A peer attaches to a port by the path of its socket, gets two rings of frames in shared memory,
 * and sends and receives Ethernet frames; docs/reference/shared-memory.md has an example
 * and what happens when a side dies.  One thread at a time may use a port; ports are
 * independent. */
#ifndef CATCHMENT_SHM_H
#define CATCHMENT_SHM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rises when a call, a struct or a status changes its meaning. */
#define CATCHMENT_SHM_ABI 1
#define CATCHMENT_SHM_PUBLIC __attribute__((visibility("default")))

/* The peer's end of a port. */
typedef struct catchment_shm catchment_shm;

/* What a call returns instead of a count.  The text of the last one: catchment_shm_error(). */
enum catchment_shm_status {
  CATCHMENT_SHM_OK = 0,        /* it was done */
  CATCHMENT_SHM_TIMEOUT = -1,  /* nothing happened in time */
  CATCHMENT_SHM_DETACHED = -2, /* the switch is gone for now; the port attaches again by itself */
  CATCHMENT_SHM_REFUSED = -3,  /* the switch speaks another version of the format */
  CATCHMENT_SHM_CORRUPT = -4,  /* the ring holds nonsense; the port lets go and attaches again */
  CATCHMENT_SHM_ARGUMENT = -5, /* the call was wrong */
  CATCHMENT_SHM_SYSTEM = -6    /* the operating system refused: see the text */
};

/* What can be waited for. */
enum catchment_shm_event {
  CATCHMENT_SHM_FRAMES = 1, /* frames can be received */
  CATCHMENT_SHM_ROOM = 2    /* a frame can be sent */
};

/* A frame in the caller's memory. */
typedef struct catchment_shm_frame {
  void* data;      /* its first byte */
  uint32_t length; /* bytes of the frame */
  uint32_t room;   /* receive: bytes at data */
} catchment_shm_frame;

/* What a port has done so far. */
typedef struct catchment_shm_info {
  uint32_t cells;       /* frames that fit a ring */
  uint32_t frame_bytes; /* the longest frame */
  uint64_t epoch;       /* of this attachment; another one after every re-attachment */
  uint64_t attachments; /* how often this port has been attached */
  uint64_t sent;        /* frames, since catchment_shm_attach() */
  uint64_t received;    /* the same */
  uint64_t too_long;    /* frames received that did not fit the caller's room, and were dropped */
  int32_t switch_pid;   /* of the process that serves the port */
  int32_t attached;     /* 0: detached for now */
} catchment_shm_info;

/* CATCHMENT_SHM_ABI of the library: compare it before anything else is called. */
CATCHMENT_SHM_PUBLIC int catchment_shm_abi(void);

/* Attaches to the port whose socket is at `path`, waiting up to `timeout_ms` for the switch to be
 * there and the port to be free (0: one try, of 5 s at most; negative: forever).  Free it with
 * catchment_shm_detach(). NULL: `*status` says which error (TIMEOUT: waiting longer may help, all
 * others are final) and `error` says it in words, in up to `error_bytes` with the final zero.  Both
 * may be NULL. */
CATCHMENT_SHM_PUBLIC catchment_shm* catchment_shm_attach(const char* path, int timeout_ms,
                                                         int* status, char* error,
                                                         size_t error_bytes);
/* Attaches likewise, and waits for nothing: where the switch is not there yet, the port is detached
 * for now, and attaches by itself.  NULL where waiting would not help. */
CATCHMENT_SHM_PUBLIC catchment_shm* catchment_shm_attach_later(const char* path, int* status,
                                                               char* error, size_t error_bytes);
/* Gives the port back to the switch, and the memory to the system. */
CATCHMENT_SHM_PUBLIC void catchment_shm_detach(catchment_shm* port);

/* Copies up to `count` frames into the ring and tells the switch.  Returns how many; fewer: the
 * ring is full (wait for CATCHMENT_SHM_ROOM).  A frame of 0 bytes or more than frame_bytes is
 * ARGUMENT. */
CATCHMENT_SHM_PUBLIC int catchment_shm_send(catchment_shm* port, const catchment_shm_frame* frames,
                                            int count);
/* Copies up to `count` frames out of the ring, each into its `data` of `room` bytes, and sets its
 * `length`.  Returns how many; 0: none is there (wait for CATCHMENT_SHM_FRAMES). */
CATCHMENT_SHM_PUBLIC int catchment_shm_receive(catchment_shm* port, catchment_shm_frame* frames,
                                               int count);

/* As catchment_shm_receive(), without the copy: sets `data` to where the frame lies in the ring,
 * and `room` and `length` to its length.  It stays there until the next catchment_shm_peek() or
 * catchment_shm_receive(), so call one before every sleep.  A broken switch may change the bytes
 * while you look: do not read again what you have checked. */
CATCHMENT_SHM_PUBLIC int catchment_shm_peek(catchment_shm* port, catchment_shm_frame* frames,
                                            int count);

/* Begins a frame that is written in the ring: room for frame_bytes, or NULL (full or detached).
 * Write there, then commit its length. */
CATCHMENT_SHM_PUBLIC void* catchment_shm_reserve(catchment_shm* port);
/* Ends the frame that catchment_shm_reserve() began.  The switch sees it at the next flush (or
 * send); a commit without one is forgotten when the switch goes away. */
CATCHMENT_SHM_PUBLIC int catchment_shm_commit(catchment_shm* port, uint32_t length);
/* As catchment_shm_commit(), for a frame that ends with bytes that lie elsewhere: `length` bytes
 * were written, `rest_length` at `rest` follow.  They are copied once where `length` is a multiple
 * of 64. */
CATCHMENT_SHM_PUBLIC int catchment_shm_commit_with(catchment_shm* port, uint32_t length,
                                                   const void* rest, uint32_t rest_length);
/* Shows the switch what was committed, and wakes it. */
CATCHMENT_SHM_PUBLIC int catchment_shm_flush(catchment_shm* port);

/* Waits for one of `events` (a sum of catchment_shm_event) for up to `timeout_us` (negative:
 * forever): looks for a short while, then sleeps.  Attaches again when the switch comes back.
 * Returns the events that are there, TIMEOUT, or DETACHED when the time ended without a switch. */
CATCHMENT_SHM_PUBLIC int catchment_shm_wait(catchment_shm* port, int events, int64_t timeout_us);

/* To sleep in one's own poll() or epoll: a descriptor that becomes readable when something happens,
 * the same one until detach.  Call catchment_shm_arm() before every sleep. */
CATCHMENT_SHM_PUBLIC int catchment_shm_descriptor(const catchment_shm* port);
/* Before a sleep on the descriptor: those of `events` that are there already (then do not sleep),
 * or OK: sleep now. */
CATCHMENT_SHM_PUBLIC int catchment_shm_arm(catchment_shm* port, int events);
/* Looks for `events` for as long as is wise before a sleep (tens of microseconds, less when looking
 * has not paid lately), or until *stop is not 0 (NULL: no such thing).  Returns those that are
 * there, or OK. */
CATCHMENT_SHM_PUBLIC int catchment_shm_look(catchment_shm* port, int events, const int* stop);
/* Whether the switch is there: OK or DETACHED.  Without it, a port that is neither full nor empty
 * may take a while to notice. */
CATCHMENT_SHM_PUBLIC int catchment_shm_check(catchment_shm* port);

/* What the last call that failed has to say, or why the switch went away; never NULL. */
CATCHMENT_SHM_PUBLIC const char* catchment_shm_error(const catchment_shm* port);
/* Fills in the counters. */
CATCHMENT_SHM_PUBLIC void catchment_shm_get_info(const catchment_shm* port,
                                                 catchment_shm_info* info);

#ifdef __cplusplus
}
#endif

#endif
