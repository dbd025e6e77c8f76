"""Products of matrices in C functions: by a kernel's own loops or by a library, as measured.

Where a kernel meets sizes for the first time, C asks Python for the way. If it is not known yet, C
computes that very call both ways in turns, times them, and Python keeps what was faster, on disk
like all measurements. The call is completed the way that was chosen.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, final

from ...autotuning.measurements import winner_of
from ...autotuning.timing import MARGIN, Fastest
from ...config import current
from ...kernels.backend import KernelFunction
from ..building import Library
from ..kernel import LEAST, Route
from ..launching.routes import WAYS, key_of_sizes, note_way, settle_way, use_products

POLICIES: Final = ("own", "library", "measured", "unmeasured")
_MEASURE: Final = 2
_GIVEN: Final = 10
"""The integers that C passes."""

ROUTING: Final = f"""
#include <sys/resource.h>

enum {{ RELAY_LEAST_PRODUCTS = {LEAST}, RELAY_ROUTES = 256, RELAY_MEASURE = {_MEASURE} }};

/* A product that has been met: the policy, the kernel, whether it has its operands packed, and the
   sizes; and the way it takes, 0 for its own loops, 1 for a library. */
typedef struct {{ int64_t policy, kernel, is_kept, batch, rows, columns, count, way; }} relay_route;

static relay_route relay_routes[RELAY_ROUTES];
static int relay_routes_known;

/* The computation of a product, which is repeated both ways until the faster one is known. */
typedef struct {{
    relay_route *route;
    int64_t way, switches;
    double began, last, best[2], undisturbed;
    int runs;
    bool is_measured, is_over;
}} relay_trial;

static int64_t relay_ask(relay_state *s, const relay_trial *t, bool is_answer) {{
    const relay_route *r = t->route;
    int64_t given[{_GIVEN}] = {{
        is_answer, r->kernel, r->is_kept, r->batch, r->rows, r->columns, r->count,
        t->best[0] * 1e9, t->best[1] * 1e9, t->undisturbed > 0}};
    return s->call->routes(given);
}}

static __attribute__((unused)) relay_trial relay_try(
    relay_state *s, int64_t kernel, int64_t is_kept, int64_t batch, int64_t rows, int64_t columns,
    int64_t count
) {{
    relay_trial t = {{0}};
    if (batch * rows * columns * count < RELAY_LEAST_PRODUCTS) return t;
    relay_route sought = {{s->call->products, kernel, is_kept, batch, rows, columns, count, 0}};
    for (int i = 0; i < relay_routes_known; i++) {{
        if (memcmp(&sought, relay_routes + i, offsetof(relay_route, way))) continue;
        t.way = relay_routes[i].way;
        return t;
    }}
    if (relay_routes_known == RELAY_ROUTES) relay_routes_known = 0;
    t.route = relay_routes + relay_routes_known;
    *t.route = sought;
    t.way = relay_ask(s, &t, false);
    t.is_measured = t.way == RELAY_MEASURE;
    if (!t.is_measured) t.route->way = t.way, relay_routes_known++;
    return t;
}}

static double relay_seconds(void) {{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}}

static int64_t relay_switches(void) {{
    struct rusage used;
    return getrusage(RUSAGE_SELF, &used) ? 0 : used.ru_nivcsw;
}}

/* Returns whether the product is to be computed again, and sets the way: both in turns, the first
   times to prepare, then the faster one. */
static __attribute__((noinline)) bool relay_measures(relay_state *s, relay_trial *t) {{
    double now = relay_seconds(), took = now - t->last;
    if (t->is_over) return false;
    if (t->runs == 0) t->began = now, t->switches = relay_switches();
    if (t->runs > 2 && (t->runs < 5 || took < t->best[t->way])) t->best[t->way] = took;
    if (t->runs > 2 && t->runs % 2 == 0) {{
        int64_t switches = relay_switches();
        if (switches == t->switches) t->undisturbed = 1;
        t->switches = switches;
        if (t->runs == 16 || now - t->began > (t->runs == 4 ? 0.1 : 0.004)) {{
            int64_t last = t->way;
            t->way = t->route->way = relay_ask(s, t, true);
            relay_routes_known++;
            t->is_over = true;
            return t->way != last;
        }}
    }}
    t->way = t->runs++ % 2;
    t->last = relay_seconds();
    return true;
}}

static inline __attribute__((unused)) bool relay_goes_on(relay_state *s, relay_trial *t) {{
    if (RELAY_RARELY(t->is_measured)) return relay_measures(s, t);
    return t->runs++ == 0;
}}
"""


def policy() -> int:
    """Return the number of the policy of products, as the options say."""
    options = current()
    is_unmeasured = options.products == "measured" and not options.measure
    return POLICIES.index("unmeasured" if is_unmeasured else options.products)


@final
class Routing:
    """The ways of the kernels of one text. C calls the function at `address`."""

    def __init__(self, library: Library, routed: Sequence[tuple[KernelFunction, Route]]) -> None:
        use_products(library)
        self._routed: Final = routed
        kind = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))
        self._function: Final = kind(self._asked)
        self.address: Final = ctypes.cast(self._function, ctypes.c_void_p).value or 0

    def _asked(self, given: Any) -> int:
        """Return the number of a way, or that of measuring. The integers are whether it has been
        measured, the kernel, whether it has its operands packed, the sizes, the nanoseconds of both
        ways, and whether nothing disturbed them."""
        is_answer, number, is_kept, batch, rows, columns, count, own, library, is_sure = given[
            :_GIVEN
        ]
        kernel, route = self._routed[number]
        sizes = (batch, rows, columns, *[count // len(route.summed)] * len(route.summed))
        key = key_of_sizes(route, sizes, "in a function", *["packed"] * is_kept)
        if is_answer:
            way = "library" if library < MARGIN * own else "own"
            times = {"own": own * 1e-9, "library": library * 1e-9}
            why = settle_way(key, kernel.name, Fastest(way, bool(is_sure), times))
        else:
            way, why = _known(key)
        if way is None:
            return _MEASURE
        note_way(kernel, sizes, way, why)
        return WAYS.index(way)


def _known(key: str) -> tuple[str | None, str]:
    wanted = POLICIES[policy()]
    if wanted == "measured":
        return winner_of(key, WAYS), "as measured before"
    if wanted == "unmeasured":
        return "own", wanted
    return wanted, "as the option `products` asks"
