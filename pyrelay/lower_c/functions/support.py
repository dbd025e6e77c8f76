"""The C that every text of functions begins with: how it is called, how it fails, how it stops.

A failure is a jump back to where Python called: it leaves the number of its place, and the operands
that failed. Recursion is bounded by the number of calls that wait, and by the end of the stack: a
program that needs more is run again, in a thread whose stack has room for all calls that may wait.
Loops and recursive calls count down to the next look at signals, so a program can be interrupted;
other threads of Python run then, too.
"""

from __future__ import annotations

from typing import Final

from .collected import SWEEPING
from .rounds import AHEAD, COLUMNS

SUPPORT: Final = r"""
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Static_assert(sizeof(void *) == 8, "addresses have 64 bits here");

typedef union { int64_t i; double f; } relay_cell;

typedef struct {
    int64_t most_waiting;   /* calls that may wait for each other */
    int64_t stack;          /* bytes of the stack of a thread of its own; 0 for none */
    int (*signals)(void);   /* what Python has for these, or NULL */
    void *(*release)(void);
    void (*acquire)(void *);
    void *parallel, *threads, *thread;  /* what runs loops of kernels in threads */
    int64_t (*routes)(const int64_t *);     /* what knows which way products are computed */
    int64_t products;       /* the policy for these */
    struct relay_spare *spare;  /* the memory that the thread keeps for its next calls, or NULL */
    relay_cell failed[4];   /* the operands of what failed */
} relay_call;               /* the cells of arguments and results lie behind it */

typedef struct relay_chunk {
    struct relay_chunk *next;
    size_t size, used;
    bool is_block;          /* one piece of the heap has it alone */
    bool is_lent;           /* it lies in a block of which nobody needs this part */
} relay_chunk;

typedef struct relay_spare { relay_chunk *first; size_t bytes; } relay_spare;

typedef struct { relay_chunk *chunk; size_t used; } relay_mark;

typedef struct relay_state {
    relay_call *call;
    relay_chunk *first, *chunk;     /* the memory of tensors, and the part that is in use */
    relay_chunk *heap;      /* the memory of data and of what it holds, which only grows */
    relay_chunk *lent;      /* parts of it that nobody needs any more */
    size_t heap_bytes, small_bytes;
    char *dying;            /* the last of rows that a walk over them leaves behind, or NULL */
    int64_t dying_bytes;    /* those of each; as many are free behind the last one */
    char *ahead;            /* a tensor with room for a row before it, or NULL */
#ifdef RELAY_KERNELS
    relay_run run;
#endif
    relay_cell *cells;
    void (*body)(struct relay_state *);
    char *limit;            /* the stack may grow down to here */
    int64_t first_waiting, most_waiting, ticks, site;
    bool has_thread;
    volatile bool stop, done;
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    jmp_buf back;
} relay_state;

enum { RELAY_DEEP = -1, RELAY_STOPPED = -2, RELAY_NO_THREAD = -3, RELAY_AGAIN = -4 };
enum { RELAY_CHUNK = 64 << 10, RELAY_FIRST = 8 << 10, RELAY_LINE = 64 };
enum { RELAY_LARGE_CHUNK = 16 << 20, RELAY_BLOCK = 256 << 10 };
#define RELAY_MOST_HEAP ((size_t)4 << 30)   /* the host gives memory back that is not used */
enum { RELAY_TICKS = 1 << 16, RELAY_STACK = 128 << 10, RELAY_SPARE = 256 << 10 };
enum { RELAY_LEVELS = 8 };  /* one call of so many that wait looks at their number and the stack */

#define RELAY_MOST_SPARE ((size_t)128 << 20)

#define RELAY_RARELY(condition) __builtin_expect(!!(condition), 0)

static __attribute__((noreturn, cold, noinline, unused))
void relay_fail(relay_state *s, int64_t site, const relay_cell *operands, int count) {
    for (int i = 0; i < count; i++) s->call->failed[i] = operands[i];
    s->site = site;
    longjmp(s->back, 1);
}

/* Returns whether a chunk is large enough, and not so large that it is better kept whole. */
static inline bool relay_suits(const relay_chunk *chunk, size_t room) {
    return chunk->size >= room && chunk->size / 2 <= room;
}

static inline char *relay_end(relay_chunk *chunk) {
    return (char *)chunk + RELAY_LINE + chunk->size;
}

/* Returns the smallest part of the heap that nobody needs and that is large enough, or the end of
   it; NULL if there is none. */
static relay_chunk *relay_lent(relay_state *s, size_t room) {
    relay_chunk **place = 0;
    for (relay_chunk **next = &s->lent; *next; next = &(*next)->next)
        if ((*next)->size >= room && (!place || (*next)->size < (*place)->size)) place = next;
    if (!place) return 0;
    relay_chunk *found = *place;
    if (found->size < room + RELAY_LINE) {
        *place = found->next;
        return found;
    }
    found->size -= room + RELAY_LINE;
    relay_chunk *end = (relay_chunk *)relay_end(found);
    *end = (relay_chunk){.size = room, .is_lent = true};
    return end;
}

/* Lends a part of the heap, in the order of addresses: neighbours become one. */
static void relay_lend(relay_state *s, relay_chunk *chunk) {
    relay_chunk *before = 0, *after = s->lent;
    while (after && after < chunk) before = after, after = after->next;
    chunk->next = after;
    if (after && relay_end(chunk) == (char *)after) {
        chunk->size += RELAY_LINE + after->size;
        chunk->next = after->next;
    }
    if (!before) {
        s->lent = chunk;
    } else if (relay_end(before) == (char *)chunk) {
        before->size += RELAY_LINE + chunk->size;
        before->next = chunk->next;
    } else {
        before->next = chunk;
    }
}

/* Returns memory that an earlier call of the thread has left, of about this size, or else new: the
   system makes zeros of each page that it gives, which takes longer than many kernels. */
static relay_chunk *relay_made(relay_state *s, size_t room) {
    relay_spare *spare = s->has_thread ? 0 : s->call->spare;
    relay_chunk **place = 0;
    for (relay_chunk **next = spare ? &spare->first : 0; next && *next; next = &(*next)->next) {
        bool is_less = !place || (*next)->size < (*place)->size;
        if (is_less && relay_suits(*next, room)) place = next;
    }
    if (!place) {
        relay_chunk *made = aligned_alloc(RELAY_LINE, RELAY_LINE + room);
        if (made) *made = (relay_chunk){.size = room};
        return made;
    }
    relay_chunk *found = *place;
    *place = found->next;
    spare->bytes -= found->size;
    return found;
}

/* Leaves memory to the next calls of the thread, or to the system. */
static void relay_leave(relay_state *s, relay_chunk *chunk) {
    if (chunk->is_lent) {
        relay_lend(s, chunk);
        return;
    }
    relay_spare *spare = s->has_thread ? 0 : s->call->spare;
    if (!spare || spare->bytes + chunk->size > RELAY_MOST_SPARE) {
        free(chunk);
        return;
    }
    chunk->next = spare->first;
    spare->first = chunk;
    spare->bytes += chunk->size;
}

static __attribute__((cold, noinline, unused))
relay_chunk *relay_more(relay_state *s, size_t size) {
    relay_chunk *after = s->chunk->next;
    size_t room = size < RELAY_CHUNK ? RELAY_CHUNK : size;
    while (after && !relay_suits(after, room)) {
        relay_chunk *other = after;
        after = after->next;
        relay_leave(s, other);
    }
    if (!after) {
        relay_chunk *made = relay_lent(s, room);
        if (!made) made = relay_made(s, room);
        if (!made) relay_fail(s, RELAY_AGAIN, 0, 0);
        made->next = 0;
        after = made;
    }
    s->chunk->next = after;
    after->used = 0;
    return s->chunk = after;
}

static inline __attribute__((unused)) void *relay_room(relay_state *s, int64_t bytes) {
    size_t size = ((size_t)bytes + RELAY_LINE - 1) & ~(size_t)(RELAY_LINE - 1);
    relay_chunk *chunk = s->chunk;
    if (chunk->size - chunk->used < size) chunk = relay_more(s, size);
    char *found = (char *)chunk + RELAY_LINE + chunk->used;
    chunk->used += size;
    return found;
}

static inline __attribute__((unused)) relay_mark relay_marked(relay_state *s) {
    return (relay_mark){s->chunk, s->chunk->used};
}

static inline __attribute__((unused)) void relay_forget(relay_state *s, relay_mark mark) {
    s->chunk = mark.chunk;
    mark.chunk->used = mark.used;
}

/* Leaves the memory of a tensor that nobody needs any more, if it has a chunk of its own. */
static __attribute__((cold, noinline, unused))
void relay_drop(relay_state *s, void *tensor, int64_t bytes) {
    size_t size = ((size_t)bytes + RELAY_LINE - 1) & ~(size_t)(RELAY_LINE - 1);
    if (size < RELAY_BLOCK) return;
    relay_chunk *own = (relay_chunk *)((char *)tensor - RELAY_LINE);
    relay_chunk *before = s->first, *chunk = before->next;
    while (chunk && chunk != own) before = chunk, chunk = chunk->next;
    if (!chunk || chunk->used != size) return;
    if (s->chunk == chunk) s->chunk = before;
    before->next = chunk->next;
    relay_leave(s, chunk);
}

static bool relay_has_heap(relay_state *s, size_t bytes) {
    size_t most = (size_t)sysconf(_SC_PHYS_PAGES) / 4 * (size_t)sysconf(_SC_PAGESIZE);
    if (most > RELAY_MOST_HEAP) most = RELAY_MOST_HEAP;
    return bytes <= most && s->heap_bytes <= most - bytes;
}

/* Large pieces have blocks of their own, of their size; small ones go on behind what is in use. */
static __attribute__((cold, noinline, unused))
relay_chunk *relay_more_heap(relay_state *s, size_t size) {
    bool is_block = size >= RELAY_BLOCK;
    size_t room = s->small_bytes < RELAY_CHUNK ? RELAY_CHUNK : s->small_bytes;
    if (room > RELAY_LARGE_CHUNK) room = RELAY_LARGE_CHUNK;
    if (room < size || is_block) room = size;
    relay_chunk *made = relay_has_heap(s, room) ? relay_made(s, room) : 0;
    if (!made) relay_fail(s, RELAY_AGAIN, 0, 0);
    made->is_block = is_block;
    made->used = 0;
    s->heap_bytes += made->size;
    if (!is_block) s->small_bytes += made->size;
    relay_chunk **place = is_block && s->heap ? &s->heap->next : &s->heap;
    made->next = *place;
    return *place = made;
}

static inline void *relay_heap_bytes(relay_state *s, size_t bytes, size_t alignment) {
    size_t size = (bytes + alignment - 1) & ~(alignment - 1);
    relay_chunk *chunk = s->heap;
    size_t begin = chunk ? (chunk->used + alignment - 1) & ~(alignment - 1) : 0;
    bool has_room = chunk && !chunk->is_block && begin + size <= chunk->size;
    if (!has_room) chunk = relay_more_heap(s, size), begin = 0;
    chunk->used = begin + size;
    return (char *)chunk + RELAY_LINE + begin;
}

static inline __attribute__((unused)) void *relay_heap(relay_state *s, int64_t bytes) {
    size_t size = ((size_t)bytes + RELAY_LINE - 1) & ~(size_t)(RELAY_LINE - 1);
    return relay_heap_bytes(s, size, RELAY_LINE);
}

static inline __attribute__((unused)) void *relay_data(relay_state *s, size_t bytes) {
    return relay_heap_bytes(s, bytes, sizeof(int64_t));
}

static void relay_free_all(relay_state *s, relay_chunk *chunk) {
    for (relay_chunk *next; chunk; chunk = next) {
        next = chunk->next;
        relay_leave(s, chunk);
    }
}

static void relay_free(relay_state *s) {
    relay_free_all(s, s->first->next);
    relay_free_all(s, s->heap);
}

/* A tensor that a loop carries has two places of its own, which take turns. */
#define RELAY_CARRY(p, value, bytes) \
    if ((value) != p && (value) != p##_next) memcpy(p##_next, (value), (bytes))
#define RELAY_TURN(p, value) \
    if ((value) != p) { \
        void *turned = p##_next; \
        p##_next = p##_last; \
        p = p##_last = turned; \
    } (void)0

static __attribute__((cold, noinline, unused)) void relay_look(relay_state *s) {
    relay_call *call = s->call;
    s->ticks = RELAY_TICKS;
    if (s->has_thread) {
        if (s->stop) relay_fail(s, RELAY_STOPPED, 0, 0);
    } else if (call->signals) {
        call->acquire(call->release());
        if (call->signals()) relay_fail(s, RELAY_STOPPED, 0, 0);
    }
}

static inline __attribute__((unused)) void relay_tick(relay_state *s) {
    if (RELAY_RARELY(--s->ticks < 0)) relay_look(s);
}

static __attribute__((noinline, unused))
void relay_deeper(relay_state *s, int64_t waiting, int64_t site) {
    if (waiting > s->most_waiting) relay_fail(s, site, 0, 0);
    char *end = __builtin_frame_address(0);
    if (end < s->limit) relay_fail(s, RELAY_DEEP, 0, 0);
    relay_tick(s);
}

static inline __attribute__((unused))
void relay_wait(relay_state *s, int64_t waiting, int64_t site) {
    if (RELAY_RARELY(waiting % RELAY_LEVELS == 0)) relay_deeper(s, waiting, site);
}

static void *relay_in_thread(void *given) {
    relay_state *s = given;
    s->limit = (char *)__builtin_frame_address(0) - s->call->stack + RELAY_SPARE;
    if (!setjmp(s->back)) s->body(s);
    pthread_mutex_lock(&s->mutex);
    s->done = true;
    pthread_cond_signal(&s->ended);
    pthread_mutex_unlock(&s->mutex);
    return 0;
}

static bool relay_ended(relay_state *s) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    pthread_mutex_lock(&s->mutex);
    if (!s->done) pthread_cond_timedwait(&s->ended, &s->mutex, &until);
    bool done = s->done;
    pthread_mutex_unlock(&s->mutex);
    return done;
}

static int64_t relay_on_large_stack(relay_state *s) {
    relay_call *call = s->call;
    pthread_t thread;
    pthread_attr_t attributes;
    bool is_stopped = false, ended = false;
    pthread_mutex_init(&s->mutex, 0);
    pthread_cond_init(&s->ended, 0);
    pthread_attr_init(&attributes);
    s->has_thread = true;
    bool begun = !pthread_attr_setstacksize(&attributes, call->stack)
        && !pthread_create(&thread, &attributes, relay_in_thread, s);
    pthread_attr_destroy(&attributes);
    while (begun && !ended) {
        void *thread_state = call->release ? call->release() : 0;
        ended = relay_ended(s);
        if (ended) pthread_join(thread, 0);
        if (call->acquire) call->acquire(thread_state);
        if (!is_stopped && call->signals && call->signals()) is_stopped = s->stop = true;
    }
    pthread_cond_destroy(&s->ended);
    pthread_mutex_destroy(&s->mutex);
    relay_free(s);
    if (!begun) return RELAY_NO_THREAD;
    return is_stopped ? RELAY_STOPPED : s->site;
}

static __attribute__((noinline))
int64_t relay_enter(relay_call *call, void (*body)(relay_state *)) {
    /* The first chunk takes no call of malloc: small tensors do with it. */
    struct { relay_chunk chunk; char room[RELAY_LINE + RELAY_FIRST]; }
        first __attribute__((aligned(RELAY_LINE)));
    first.chunk = (relay_chunk){0, RELAY_FIRST, 0};
    relay_state state = {.call = call, .first = &first.chunk, .chunk = &first.chunk};
    state.cells = (relay_cell *)(call + 1);
    state.body = body;
    /* Counting begins where the first call too many is one at which the stack is looked at. */
    state.first_waiting = RELAY_LEVELS - 1 - call->most_waiting % RELAY_LEVELS;
    state.most_waiting = state.first_waiting + call->most_waiting;
#ifdef RELAY_KERNELS
    memcpy(&state.run.parallel, &call->parallel, sizeof call->parallel);
    memcpy(&state.run.most_threads, &call->threads, sizeof call->threads);
    memcpy(&state.run.thread, &call->thread, sizeof call->thread);
#endif
    state.ticks = RELAY_TICKS;
    if (call->stack) return relay_on_large_stack(&state);
    state.limit = (char *)__builtin_frame_address(0) - RELAY_STACK;
    if (!setjmp(state.back)) body(&state);
    relay_free(&state);
    return state.site;
}
"""

HELPERS: Final = {
    "relay_place": """
static inline int64_t relay_place(relay_state *s, int64_t index, int64_t size) {
    int64_t at = index < 0 ? index + size : index;
    if (RELAY_RARELY(at < 0 || at >= size)) relay_fail(s, RELAY_AGAIN, 0, 0);
    return at;
}
""",
    "relay_floor_divide": """
static inline int64_t relay_floor_divide(int64_t a, int64_t b) {
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}
""",
    "relay_modulo": """
static inline int64_t relay_modulo(int64_t a, int64_t b) {
    if (b == -1) return 0;
    int64_t left = a % b;
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}
""",
    "relay_power_overflows": """
static bool relay_power_overflows(int64_t base, int64_t exponent, int64_t *found) {
    int64_t power = 1;
    while (exponent > 0) {
        if (exponent & 1 && __builtin_mul_overflow(power, base, &power)) return true;
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return true;
    }
    *found = power;
    return false;
}
""",
    "relay_power": """
static uint64_t relay_power(uint64_t base, int64_t exponent) {
    uint64_t power = 1;
    for (; exponent > 0; exponent >>= 1, base *= base) if (exponent & 1) power *= base;
    return power;
}
""",
    "relay_floor_divide_f64": """
static inline double relay_floor_divide_f64(double a, double b) {
    if (b == 0) return a / b;
    double left = fmod(a, b), q = (a - left) / b;
    if (left != 0 && (b < 0) != (left < 0)) q -= 1;
    if (q == 0) return copysign(0.0, a / b);
    double whole = floor(q);
    return q - whole > 0.5 ? whole + 1 : whole;
}
""",
    "relay_floor_divide_f32": """
static inline float relay_floor_divide_f32(float a, float b) {
    if (b == 0) return a / b;
    float left = fmodf(a, b), q = (a - left) / b;
    if (left != 0 && (b < 0) != (left < 0)) q -= 1;
    if (q == 0) return copysignf(0.0f, a / b);
    float whole = floorf(q);
    return q - whole > 0.5f ? whole + 1 : whole;
}
""",
    "relay_remainder_f64": """
static inline double relay_remainder_f64(double a, double b) {
    double left = fmod(a, b);
    return left != 0 && (b < 0) != (left < 0) ? left + b : left;
}
""",
    "relay_remainder_f32": """
static inline float relay_remainder_f32(float a, float b) {
    float left = fmodf(a, b);
    return left != 0 && (b < 0) != (left < 0) ? left + b : left;
}
""",
    "RELAY_MINIMUM": """
#define RELAY_MINIMUM(a, b) ((a) != (a) || (a) < (b) ? (a) : (b))
""",
    "RELAY_MAXIMUM": """
#define RELAY_MAXIMUM(a, b) ((a) != (a) || (a) > (b) ? (a) : (b))
""",
    "relay_ahead": AHEAD,
    "relay_columns": COLUMNS,
    "relay_sweep": SWEEPING,
}
"""Functions that a text has where it names them."""


def helpers_of(text: str) -> str:
    """Return the functions that a text names."""
    return "".join(code.lstrip("\n") for name, code in HELPERS.items() if f"{name}(" in text)
