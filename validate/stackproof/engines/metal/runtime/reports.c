/* What the detectors found: each pair of places once, until somebody takes the list. */
#include "runtime.h"

static struct report reports[256];
static u32 report_count;

/* A race is one race, whichever access came second. */
static int same_places(const struct report* a, const struct report* b) {
  return (a->site == b->site && a->other_site == b->other_site) || (a->site == b->other_site && a->other_site == b->site);
}

void metal_report(struct report r) {
  for (u32 i = 0; i < report_count; ++i)
    if (reports[i].kind == r.kind && same_places(&reports[i], &r)) {
      ++reports[i].count;
      return;
    }
  if (report_count == sizeof reports / sizeof reports[0])
    return;
  r.count = 1;
  reports[report_count++] = r;
}

u32 metal_take_reports(struct report* out, u32 room) {
  u32 n = report_count < room ? report_count : room;
  memcpy(out, reports, n * sizeof *out);
  report_count = 0;
  return n;
}

struct report metal_report_here(u32 kind, u64 site) {
  struct worker* w = &metal_worker;
  struct report r;
  memset(&r, 0, sizeof r);
  r.kind = kind;
  r.site = site;
  r.thread = w->current;
  r.group = w->group;
  r.other_thread = r.other_group = ~0ull;
  r.region = ~0u;
  return r;
}
