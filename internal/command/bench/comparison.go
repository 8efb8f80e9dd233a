package bench

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// pairs are the phases of one failure at one rate, by round.
type pairs struct{ healthy, failing []Phase }

// comparison is the result of pairs.
type comparison struct {
	Group   string  `json:"group"` // embedded or postgresql
	Rate    int     `json:"rate"`  // orders per second
	Ill     string  `json:"ill"`   // "nobody" = the control
	Rounds  int     `json:"rounds"`
	Healthy side    `json:"well"`
	Failing side    `json:"sick"`
	P50     float64 `json:"p50_ratio"` // failing to healthy, like the ratios below
	P99     float64 `json:"p99_ratio"`
	Early   float64 `json:"p99_ratio_first_second"`
	ByRound spread  `json:"p99_ratio_by_round"`
	Goal    string  `json:"goal,omitempty"`
	Met     *bool   `json:"goal_met,omitempty"`

	name string
}

// side is all phases of one kind as one.
type side struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50_ms"`
	P99     float64 `json:"p99_ms"`
	Late    float64 `json:"sent_late_p99_ms"` // by the load generator itself
	// CPU time divided by elapsed time: 1 = one core.
	Server    float64 `json:"server_cores"`
	Generator float64 `json:"generator_cores"`
}

// spread is the range of the rounds.
type spread struct {
	Median  float64 `json:"median"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
}

// compare compares the phases with failing merchants with those without.
func compare(group string, rate int, mode failure, both pairs) comparison {
	c := comparison{
		Group: group, Rate: rate, Ill: mode.key, name: mode.name, Rounds: len(both.healthy),
		Healthy: sideOf(both.healthy), Failing: sideOf(both.failing),
		P50:   Ratio(Pool(both.failing, TookOf).At(0.5), Pool(both.healthy, TookOf).At(0.5)),
		P99:   Ratio(Pool(both.failing, TookOf).At(0.99), Pool(both.healthy, TookOf).At(0.99)),
		Early: Ratio(Pool(both.failing, earlyOf).At(0.99), Pool(both.healthy, earlyOf).At(0.99)),
	}
	var rounds []float64
	for i := range both.healthy {
		rounds = append(rounds, Ratio(Pool(both.failing[i:i+1], TookOf).At(0.99), Pool(both.healthy[i:i+1], TookOf).At(0.99)))
	}
	c.ByRound = SpreadOf(rounds)
	if mode.behave != nil {
		met := c.P99 <= maxIsolation
		c.Goal, c.Met = fmt.Sprintf("≤ %.2f ×", maxIsolation), &met
	}
	return c
}

// The samples of a phase that pool takes.
func TookOf(p Phase) Latencies  { return p.Took }
func earlyOf(p Phase) Latencies { return p.Took[:p.early] }
func lateOf(p Phase) Latencies  { return p.late }

// Pool returns the samples of all phases together. A percentile of many samples is steadier
// than the mean of the percentiles of a few.
func Pool(phases []Phase, of func(Phase) Latencies) Latencies {
	var l Latencies
	for _, p := range phases {
		l = append(l, of(p)...)
	}
	return Sorted(l)
}

func sideOf(phases []Phase) side {
	took := Pool(phases, TookOf)
	s := side{Samples: len(took), P50: MS(took.At(0.5)), P99: MS(took.At(0.99)), Late: MS(Pool(phases, lateOf).At(0.99))}
	var server, generator, lasted time.Duration
	for _, p := range phases {
		server, generator, lasted = server+p.server, generator+p.generator, lasted+p.Lasted
	}
	s.Server, s.Generator = Ratio(server, lasted), Ratio(generator, lasted)
	return s
}

// Ratio is 0 if b is 0.
func Ratio(a, b time.Duration) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

func SpreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return spread{Median: (v[(n-1)/2] + v[n/2]) / 2, Lowest: v[0], Highest: v[n-1]}
}

// writeComparisons writes two tables per engine and rate: the latencies of the other merchants,
// and the figures of the measurement itself.
func writeComparisons(w io.Writer, list []comparison) error {
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].Group == list[0].Group && list[n].Rate == list[0].Rate {
			n++
		}
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintf(t, "\n%s, %d/s: 18 of 20 while 2\tp50 ms\tp99 ms\tp99\t%d rounds\t1st second\tgoal\t\n", list[0].Group,
			list[0].Rate, list[0].Rounds)
		for _, c := range list[:n] {
			met := ""
			if c.Met != nil {
				met = map[bool]string{true: "met", false: "missed"}[*c.Met]
			}
			_, _ = fmt.Fprintf(t, "  %s\t%.2f → %.2f\t%.2f → %.2f\t%.2f ×\t%.2f × (%.2f–%.2f)\t%.2f ×\t%s\t%s\n", c.name,
				c.Healthy.P50, c.Failing.P50, c.Healthy.P99, c.Failing.P99, c.P99, c.ByRound.Median, c.ByRound.Lowest, c.ByRound.Highest,
				c.Early, c.Goal, met)
		}
		_, _ = fmt.Fprintf(t, "  … of the measurement itself\tserver, cores\tload, cores\tsent late, p99 ms\t\n")
		for _, c := range list[:n] {
			_, _ = fmt.Fprintf(t, "  %s\t%.2f → %.2f\t%.2f → %.2f\t%.2f → %.2f\t\n", c.name,
				c.Healthy.Server, c.Failing.Server, c.Healthy.Generator, c.Failing.Generator, c.Healthy.Late, c.Failing.Late)
		}
		if err := t.Flush(); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		list = list[n:]
	}
	return nil
}
