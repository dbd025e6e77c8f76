"""The C that every text with kernels begins with, behind the functions of vectors."""

from __future__ import annotations

from typing import Final

RUN: Final = """\
#ifndef KERNEL
#define KERNEL static
#endif

typedef struct {
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned);
    int (*most_threads)(void);
    int (*thread)(void);
    char **at;
    const int64_t *size;
    const double *number;
    int64_t failed;
} relay_run;

/* The parts of a loop that a thread begins with: those from `next` to `end` that are left. */
typedef struct {
    int64_t next, end;
} relay_share;

/* The room that each thread has for panels of an operand that it packs for itself. */
typedef struct {
    int64_t slots, bytes;
} relay_space;

typedef struct {
    void (*part)(const void *, int64_t, int64_t);
    const void *given;
    int64_t size, least, threads;
    int (*thread)(void);
    relay_share *shares;
    relay_space columns, rows;
} relay_work;

/* How many loops run in one thread from now on, and how many after the next that waits long. */
static int64_t relay_alone = 0, relay_pause = 8;

static int64_t relay_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* So many additions of vectors, some microseconds, are worth a thread. */
#define RELAY_LEAST 32768

/* Runs v of n lanes at a time; the last time n may be less. */
#define OVER(i, from, to, lanes, ...) \\
    do { \\
        int64_t i = (from); \\
        for (; i + (lanes) <= (to); i += (lanes)) { enum { n = (lanes) }; __VA_ARGS__ } \\
        if (i < (to)) { const int64_t n = (to) - i; __VA_ARGS__ } \\
    } while (0)

/* Runs lines for several vectors of n lanes at a time, and for what is left for one at a time, the
   last of which may have less lanes. In EACH_8 they are done for vector u, for one after another of
   at most 8. */
#define OVER_SEVERAL(i, from, to, lanes, at_once, ...) \\
    do { \\
        int64_t i = (from); \\
        for (; i + (at_once) * (lanes) <= (to); i += (at_once) * (lanes)) { \\
            enum { whole = (lanes), n = whole, several = (at_once), left = several * whole }; \\
            __VA_ARGS__ \\
        } \\
        for (; i < (to); i += (lanes)) { \\
            enum { whole = (lanes), several = 1 }; \\
            const int64_t left = (to) - i, n = LANES_LEFT(0); \\
            __VA_ARGS__ \\
        } \\
    } while (0)

/* Does the same with one copy of lines that are many: the last vectors may have no lanes. */
#define OVER_LONG(i, from, to, lanes, at_once, ...) \\
    for (int64_t i = (from); i < (to); i += (at_once) * (lanes)) { \\
        enum { whole = (lanes), several = (at_once) }; \\
        const int64_t left = (to) - i, n = LANES_LEFT(0); \\
        __VA_ARGS__ \\
    }
#define LANES_LEFT(u) \\
    (left >= ((u) + 1) * whole ? whole : left > (u) * whole ? left - (u) * whole : 0)
#define EACH_OF(v, ...) { enum { u = v }; const int64_t n = LANES_LEFT(v); __VA_ARGS__ }
#define EACH_2(...) EACH_OF(0, __VA_ARGS__) if (several > 1) EACH_OF(1, __VA_ARGS__)
#define EACH_4(...) \\
    EACH_2 (__VA_ARGS__) \\
    if (several > 2) EACH_OF(2, __VA_ARGS__) \\
    if (several > 3) EACH_OF(3, __VA_ARGS__)
#define EACH_8(...) \\
    EACH_4 (__VA_ARGS__) \\
    if (several > 4) EACH_OF(4, __VA_ARGS__) \\
    if (several > 5) EACH_OF(5, __VA_ARGS__) \\
    if (several > 6) EACH_OF(6, __VA_ARGS__) \\
    if (several > 7) EACH_OF(7, __VA_ARGS__)
#define LET_2(type, name, ...) type name[several]; EACH_2 (name[u] = __VA_ARGS__;)
#define LET_4(type, name, ...) type name[several]; EACH_4 (name[u] = __VA_ARGS__;)
#define LET_8(type, name, ...) type name[several]; EACH_8 (name[u] = __VA_ARGS__;)

/* A tile of a grid in each of a batch. Strips of a few rows of tiles follow one another, and in a
   strip columns. */
typedef struct {
    int64_t batch, row, column, first, end, most, rows, columns;
} relay_tile;

static relay_tile relay_tile_at(int64_t number, int64_t rows, int64_t columns, int64_t most) {
    int64_t inside = number % (rows * columns), first = inside / (most * columns) * most;
    int64_t end = first + most < rows ? first + most : rows, strip = inside - first * columns;
    int64_t row = first + strip % (end - first), column = strip / (end - first);
    return (relay_tile){number / (rows * columns), row, column, first, end, most, rows, columns};
}

static void relay_next_tile(relay_tile *tile) {
    if (++tile->row < tile->end) return;
    tile->row = tile->first;
    if (++tile->column < tile->columns) return;
    tile->batch += tile->end == tile->rows;
    tile->first = tile->row = tile->end < tile->rows ? tile->end : 0;
    tile->end = tile->first + tile->most;
    if (tile->end > tile->rows) tile->end = tile->rows;
    tile->column = 0;
}

/* The panels of columns or rows that a thread has packed for itself in the loop that it runs: slot
   i has one of those with the numbers i, i + slots, ..., `behind` the number after it, or 0. */
typedef struct {
    int64_t slots, bytes, *behind;
    char *first;
} relay_panels;

static __thread relay_panels relay_own_columns, relay_own_rows;

/* Returns the room for panels of some bytes: for as many as fit, or for none if all are needed. */
static relay_space relay_space_for(int64_t panels, int64_t bytes, int needs_all) {
    int64_t whole = (bytes + 63) / 64 * 64, most = 524288 / (whole + 1);
    return (relay_space){panels <= most ? panels : needs_all ? 0 : most, whole};
}

/* So many rows of tiles meet a panel of columns before the next, and of as many rows a quarter:
   they stay in the cache, and what threads begin with are rows of the result, as in the product
   that reads it as weights. */
static int64_t relay_usual_strip(int64_t tiles) {
    return tiles < 16 ? tiles : relay_least_i64((tiles + 3) / 4, 16);
}

/* So many do where each thread packs panels for itself, and a row of tiles reads some bytes: all
   that it has, if the cache has room for them. */
static int64_t relay_strip(relay_run *run, int64_t tiles, int64_t bytes) {
    int64_t threads = run->parallel ? run->most_threads() : 1, most = 262144 / (bytes + 1);
    return relay_least_i64((tiles + threads - 1) / threads, most < 16 ? 16 : most);
}

static inline void *relay_panel(const relay_panels *own, int64_t panel) {
    return own->first + panel % own->slots * own->bytes;
}

/* Returns a panel in the room of this thread, where `part` packs it if it is not there, and with it
   others before `end`. */
static inline void *relay_packed(
    relay_panels *own, void (*part)(const void *, int64_t, int64_t), const void *given,
    int64_t panel, int64_t end
) {
    if (own->behind[panel % own->slots] != panel + 1) {
        part(given, panel, end);
        for (int64_t i = panel; i < end; i++) own->behind[i % own->slots] = i + 1;
    }
    return relay_panel(own, panel);
}

static void relay_worker(void *given) {
    relay_work *work = given;
    int64_t start = 0, parts = 0, own = work->threads > 1 ? work->thread() : 0;
    relay_space columns = work->columns, rows = work->rows;
    int64_t behind[columns.slots + rows.slots + 1];
    char room[columns.slots * columns.bytes + rows.slots * rows.bytes + 64];
    char *first = room + (64 - (uintptr_t)room % 64) % 64;
    memset(behind, 0, sizeof behind);
    relay_own_columns = (relay_panels){columns.slots, columns.bytes, behind, first};
    first += columns.slots * columns.bytes;
    relay_own_rows = (relay_panels){rows.slots, rows.bytes, behind + columns.slots, first};
    for (int64_t i = 0; i < work->threads; i++) {
        relay_share *share = &work->shares[(own + i) % work->threads];
        for (;;) {
            int64_t begin = __atomic_fetch_add(&share->next, work->size, __ATOMIC_RELAXED);
            if (begin >= share->end) break;
            if (!parts++) start = relay_clock();
            int64_t left = share->end - begin;
            work->part(work->given, begin, begin + (left < work->size ? left : work->size));
        }
    }
    if (!parts) return;
    int64_t each = (relay_clock() - start) / parts;
    int64_t least = __atomic_load_n(&work->least, __ATOMIC_RELAXED);
    while (each < least) {
        if (__atomic_compare_exchange_n(
                &work->least, &least, each, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return;
    }
}

/* Notes how long a loop took in threads, of which each of some parts took at least so long. Where
   it took more than twice as long as one thread would need, a thread was waited for that another
   process kept from running; for a while the next loops do without. */
static void relay_note(int64_t took, int64_t alone) {
    int64_t pause = __atomic_load_n(&relay_pause, __ATOMIC_RELAXED);
    int is_late = took > 2 * alone + 200000;
    if (is_late) __atomic_store_n(&relay_alone, pause, __ATOMIC_RELAXED);
    pause = is_late ? (pause < 512 ? 2 * pause : pause) : pause > 8 ? pause / 2 : pause;
    __atomic_store_n(&relay_pause, pause, __ATOMIC_RELAXED);
}

/* Runs a loop in parts, in one where it is short. Each thread begins with a share of its own, the
   same in each loop over as many places, so that it meets again in its cache what it wrote, and
   then takes parts of the others. A part has at least so much work that dealing it out does not
   show, and no two write to one line of memory: places that take little time are elements. A
   thread has room for some panels of its own. */
static void relay_in_parts_with_panels(
    relay_run *run,
    void (*part)(const void *, int64_t, int64_t),
    const void *given,
    int64_t count,
    int64_t cost,
    relay_space columns,
    relay_space rows
) {
    int64_t work = count * (cost + 1), threads = 1;
    if (count > 1 && work >= 2 * RELAY_LEAST && run->parallel) threads = run->most_threads();
    threads = threads < count ? threads : count;
    threads = threads < work / RELAY_LEAST ? threads : work / RELAY_LEAST;
    int64_t paused = threads < 2 ? 0 : __atomic_load_n(&relay_alone, __ATOMIC_RELAXED);
    if (paused > 0) __atomic_store_n(&relay_alone, paused - 1, __ATOMIC_RELAXED);
    if (threads < 2 || paused > 0) {
        relay_share all = {0, count};
        relay_work alone = {part, given, count, INT64_MAX, 1, 0, &all, columns, rows};
        if (columns.slots + rows.slots > 0) relay_worker(&alone);
        else if (count > 0) part(given, 0, count);
        return;
    }
    int64_t turns = 4 * work / (RELAY_LEAST * threads);
    turns = turns < 1 ? 1 : turns > 4 ? 4 : turns;
    int64_t size = (count + threads * turns - 1) / (threads * turns);
    if (size > 64 && cost < 256) size = (size + 63) / 64 * 64;
    int64_t parts = (count + size - 1) / size, each = (parts + threads - 1) / threads * size;
    relay_share shares[threads];
    for (int64_t i = 0; i < threads; i++) {
        int64_t end = (i + 1) * each;
        shares[i] = (relay_share){i * each, end < count ? end : count};
    }
    relay_work shared = {
        part, given, size, INT64_MAX, threads, run->thread, shares, columns, rows};
    int64_t start = relay_clock();
    run->parallel(relay_worker, &shared, (unsigned)threads, 0);
    relay_note(relay_clock() - start, parts * shared.least);
}

static void relay_in_parts(
    relay_run *run,
    void (*part)(const void *, int64_t, int64_t),
    const void *given,
    int64_t count,
    int64_t cost
) {
    relay_in_parts_with_panels(run, part, given, count, cost, (relay_space){0}, (relay_space){0});
}
"""
