package analytics

import (
	"math"
	"math/rand/v2"
	"testing"
)

// rule is a rule of alerts about minutes until a limit: it fires once a level was below fire for
// hold minutes, and ends at a level of at least clear; an unsure level changes nothing.
type rule struct{ fire, clear, hold int64 }

var (
	queueRule = rule{30, 60, 5}
	rateRule  = rule{60, 120, 5}
)

// play evaluates a rule each minute of a series and returns the minutes at which it fired.
func (r rule) play(values []float64, limit float64, of func([]float64, float64) Outlook) (fired []int) {
	firing, below := false, int64(0)
	for now := 31; now <= len(values); now++ {
		o := of(values[now-31:now], limit)
		level, known := o.Minutes()
		switch {
		case o.Unsure:
			below = 0
		case !known || level >= r.clear:
			firing, below = false, 0
		case level < r.fire:
			if below++; below > r.hold && !firing {
				firing, fired = true, append(fired, now-1)
			}
		default:
			below = 0
		}
	}
	return fired
}

const minutesOfDay = 24 * 60

// persistent is noise that is alike from minute to minute, with a standard deviation of 1.
func persistent(r *rand.Rand, alike float64, n int) []float64 {
	all, level := make([]float64, n), 0.0
	for i := range all {
		level = alike*level + math.Sqrt(1-alike*alike)*r.NormFloat64()
		all[i] = level
	}
	return all
}

// rateOf draws the success rate of a minute with so many attempts.
func rateOf(r *rand.Rand, share float64, attempts int) float64 {
	ok := 0
	for range attempts {
		if r.Float64() < share {
			ok++
		}
	}
	return float64(ok) / float64(attempts)
}

// Levels that are flat, or only follow the day, raise no alarm. Ten days of each are played.
func TestNoAlarmOnFlatLevels(t *testing.T) {
	t.Parallel()
	const days = 10
	backlog := func(mean, deviation, alike float64) func(uint64) []float64 {
		return func(seed uint64) []float64 {
			noise := persistent(rand.New(rand.NewPCG(seed, 5)), alike, minutesOfDay)
			for i := range noise {
				noise[i] = max(0, math.Round(mean+deviation*noise[i]))
			}
			return noise
		}
	}
	rate := func(share float64, attempts int) func(uint64) []float64 {
		return func(seed uint64) []float64 {
			r := rand.New(rand.NewPCG(seed, 6))
			all := make([]float64, minutesOfDay)
			for i := range all {
				all[i] = rateOf(r, share, attempts)
			}
			return all
		}
	}
	for _, c := range []struct {
		name  string
		rule  rule
		limit float64
		of    func([]float64, float64) Outlook
		draw  func(uint64) []float64
	}{
		{"empty backlog", queueRule, 1000, OutlookOfBacklog, backlog(0, 0, 0)},
		{"small backlog", queueRule, 1000, OutlookOfBacklog, backlog(40, 15, 0.5)},
		{"backlog of 300, persistent", queueRule, 1000, OutlookOfBacklog, backlog(300, 60, 0.8)},
		{"backlog of 600, persistent", queueRule, 1000, OutlookOfBacklog, backlog(600, 60, 0.8)},
		{"backlog with a daily season", queueRule, 1000, OutlookOfBacklog, func(seed uint64) []float64 {
			all := backlog(0, 30, 0.6)(seed)
			for i := range all {
				all[i] += 300 - 250*math.Cos(float64(i)/minutesOfDay*2*math.Pi)
			}
			return all
		}},
		{"rate 99 %, 200 attempts", rateRule, 0.95, OutlookOfRate, rate(0.99, 200)},
		{"rate 98 %, 40 attempts", rateRule, 0.95, OutlookOfRate, rate(0.98, 40)},
		{"rate 100 %", rateRule, 0.95, OutlookOfRate, rate(1, 20)},
	} {
		alarms := 0
		for seed := range uint64(days) {
			alarms += len(c.rule.play(c.draw(seed), c.limit, c.of))
		}
		t.Logf("%-30s %d alarms in %d days", c.name, alarms, days)
		if alarms > 0 {
			t.Errorf("%s: %d alarms", c.name, alarms)
		}
	}
}

// What does reach its limit is announced beforehand, and about when it will be is known.
func TestTrendsOfSharesEndAtTheirBounds(t *testing.T) {
	t.Parallel()
	rising, falling := make([]float64, 31), make([]float64, 31)
	for i := range rising {
		rising[i], falling[i] = 0.7+0.01*float64(i), 0.3-0.01*float64(i)
	}
	for _, c := range []struct {
		values        []float64
		hour, perHour float64
	}{{rising, 1, 0}, {falling, 0, 0}, {rising[:21], 1, 0.1}, {falling[:21], 0, -0.1}} {
		o := OutlookOfRate(c.values, 0.5)
		if !o.Known || math.Abs(o.LineAt(60)-c.hour) > 1e-9 || math.Abs(o.PerHour()-c.perHour) > 1e-9 {
			t.Errorf("the trend ends at %v, %v an hour; want %v, %v", o.LineAt(60), o.PerHour(), c.hour, c.perHour)
		}
	}
	if o := OutlookOfBacklog(make([]float64, 31), 100); o.LineAt(60) != 0 || o.PerHour() != 0 {
		t.Errorf("an empty backlog: %v", o.PerHour())
	}
}

func TestAlarmBeforeALimitIsReached(t *testing.T) {
	t.Parallel()
	const flat, runs = 90, 20
	for _, c := range []struct {
		name  string
		rule  rule
		limit float64
		of    func([]float64, float64) Outlook
		at    int // the true minute of the crossing
		draw  func(r *rand.Rand, i int) float64
	}{
		{"backlog grows by 12 a minute", queueRule, 1000, OutlookOfBacklog, flat + 75, func(r *rand.Rand, i int) float64 {
			return 100 + 12*float64(max(0, i-flat)) + 20*r.NormFloat64()
		}},
		{"outage: 25 a minute are not delivered", queueRule, 1000, OutlookOfBacklog, flat + 39, func(r *rand.Rand, i int) float64 {
			return 20 + 25.13*float64(max(0, i-flat)) + 8*r.NormFloat64()
		}},
		{"rate falls by 0.05 points a minute", rateRule, 0.95, OutlookOfRate, flat + 80, func(r *rand.Rand, i int) float64 {
			return rateOf(r, 0.99-0.0005*float64(max(0, i-flat)), 800)
		}},
	} {
		var ahead, off float64
		missed := 0
		for seed := range uint64(runs) {
			r := rand.New(rand.NewPCG(seed, 8))
			values := make([]float64, c.at+1)
			for i := range values {
				values[i] = c.draw(r, i)
			}
			fired := c.rule.play(values, c.limit, c.of)
			if len(fired) == 0 {
				missed++
				continue
			}
			if fired[0] < flat {
				t.Errorf("%s: fired before anything changed", c.name)
			}
			o := c.of(values[fired[0]-30:fired[0]+1], c.limit)
			ahead += float64(c.at-fired[0]) / runs
			off += math.Abs(float64(fired[0])+o.At.Minutes()-float64(c.at)) / runs
		}
		t.Logf("%-38s fired %.1f min before, %d of %d missed; the time was off by %.1f min", c.name, ahead, missed, runs, off)
		if missed > 0 {
			t.Errorf("%s: %d of %d missed", c.name, missed, runs)
		}
		if ahead > 0 && off > ahead {
			t.Errorf("%s: off by %.1f min, %.1f min before", c.name, off, ahead)
		}
	}
}
