package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
)

// poisson draws a count with a mean.
func poisson(r *rand.Rand, mean float64) float64 {
	if mean > 50 {
		return max(0, math.Round(mean+math.Sqrt(mean)*r.NormFloat64()))
	}
	n, p, limit := -1, 1.0, math.Exp(-mean)
	for p > limit {
		n++
		p *= r.Float64()
	}
	return float64(n)
}

const perWeek = 7 * 24 * 12 // steps of five minutes

// busy is a week with days, nights and a quiet weekend.
func busy(t int) float64 {
	day, hour := t/(24*12)%7, float64(t%(24*12))/12
	mean := 40 + 35*math.Sin((hour-8)/24*2*math.Pi)
	if day >= 5 {
		mean *= 0.6
	}
	return mean
}

func series(seed uint64, n int, mean func(int) float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	all := make([]float64, n)
	for t := range all {
		all[t] = poisson(r, mean(t))
	}
	return all
}

// forecastError is the true error of a forecast for the next hour of a known series.
func forecastError(v Volume, n int, mean func(int) float64) (wape float64) {
	var off, all float64
	for i, e := range v.Ahead {
		off, all = off+math.Abs(e.Value-mean(n+i)), all+mean(n+i)
	}
	return off / all
}

func TestVolumeOfKnownSeries(t *testing.T) {
	for _, c := range []struct {
		name  string
		weeks float64
		mean  func(int) float64
		most  float64 // error of the forecast against the truth
	}{
		{"flat", 5, func(int) float64 { return 60 }, 0.10},
		{"season", 5, busy, 0.15},
		{"season, two weeks of data", 2, busy, 0.25},
		{"season, a busy day", 5, func(t int) float64 {
			if t > 5*perWeek-10*12 {
				return 1.6 * busy(t)
			}
			return busy(t)
		}, 0.15},
		{"season and growth", 5, func(t int) float64 { return busy(t) * (1 + 0.1*float64(t)/perWeek) }, 0.15},
		{"season, an outage three weeks ago", 5, func(t int) float64 {
			if t > 2*perWeek-6 && t < 2*perWeek+300 {
				return 0
			}
			return busy(t)
		}, 0.20},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sum, naive, inside float64
			const runs = 20
			for seed := range uint64(runs) {
				n := int(c.weeks * perWeek)
				history := series(seed, n, c.mean)
				v, ok := Next(history, perWeek, 12)
				if !ok || len(v.Ahead) != 12 {
					t.Fatalf("no forecast: %+v", v)
				}
				sum += forecastError(v, n, c.mean) / runs
				inside += v.Inside / runs
				for i, e := range v.Ahead {
					if e.Low > e.Value || e.High < e.Value || e.Low < 0 {
						t.Fatalf("step %d: %+v", i, e)
					}
					naive += math.Abs(history[n-1]-c.mean(n+i)) / c.mean(n+i) / runs / 12
				}
				if math.IsNaN(v.Error) || v.Error > 1 {
					t.Errorf("last week's error %v", v.Error)
				}
			}
			t.Logf("error %.1f %% (of repeating the last value: %.1f %%), %.1f %% of last week within the band", sum*100, naive*100,
				inside*100)
			if sum > c.most {
				t.Errorf("error %.3f, want at most %.2f", sum, c.most)
			}
			if inside < 0.85 {
				t.Errorf("only %.2f of the values are within a band made for 0.95", inside)
			}
		})
	}
}

func TestNoVolumeForecastFromTooLittle(t *testing.T) {
	if v, ok := Next(series(1, 2*perWeek-1, busy), perWeek, 12); ok {
		t.Errorf("a forecast from less than 14 days: %+v", v)
	}
	gaps := series(1, 3*perWeek, busy)
	for i := range perWeek / 2 {
		gaps[2*perWeek+i] = math.NaN()
	}
	if v, ok := Next(gaps, perWeek, 12); ok {
		t.Errorf("a forecast from data of which a quarter is missing: %+v", v)
	}
	silent, ok := Next(make([]float64, 3*perWeek), perWeek, 12)
	if !ok || silent.Ahead[0].Value != 0 || !math.IsNaN(silent.Error) {
		t.Errorf("without any volume: %+v, %v", silent, ok)
	}
}

// TestNoForecastWhereTheLastQuarterIsOutsideOfTheBand: a stop of all payments is no minus of a few
// per cent.
func TestNoForecastWhereTheLastQuarterIsOutsideOfTheBand(t *testing.T) {
	t.Parallel()
	history := series(1, 3*perWeek, busy)
	if v, ok := Next(history, perWeek, 12); !ok || v.Outside {
		t.Errorf("an ordinary quarter of an hour is outside: %+v", v)
	}
	n := len(history)
	for i, outside := range []bool{false, false, true} {
		history[n-1-i] = 0
		if v, ok := Next(history, perWeek, 12); !ok || v.Outside != outside {
			t.Errorf("after %d steps without volume: outside %t", i+1, v.Outside)
		}
	}
}

func TestTrendOfKnownSeries(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	rising := make([]float64, 31)
	for i := range rising {
		rising[i] = 400 + 10*float64(i) + 8*r.NormFloat64()
	}
	rising[5], rising[17], rising[29] = 5000, math.NaN(), 0 // outliers and a gap
	l, ok := Trend(rising)
	if !ok || math.Abs(l.Slope-10) > 0.7 || math.Abs(l.Now-700) > 12 || !l.Rises() || l.High < 0 || l.N != 30 {
		t.Fatalf("%+v, %v", l, ok)
	}
	at, ok := l.Reaches(1000)
	t.Logf("reaches 1,000 in %.1f steps, true is 30; %.1f to %.1f", at.Steps, at.Earliest, at.Latest)
	if !ok || math.Abs(at.Steps-30) > 3 || at.Earliest > at.Steps || at.Latest < at.Steps {
		t.Errorf("%+v, %v", at, ok)
	}
	if _, ok := l.Reaches(600); ok {
		t.Error("a level that is already there is forecast")
	}
	if _, ok := l.Leaves(100); ok {
		t.Error("a rising level falls below a limit")
	}
	falling := make([]float64, 31)
	for i := range falling {
		falling[i] = 0.99 - 0.001*float64(i)
	}
	if l, _ := Trend(falling); l.High >= 0 {
		t.Errorf("%+v", l)
	} else if at, ok := l.Leaves(0.95); !ok || math.Abs(at.Steps-10) > 0.1 {
		t.Errorf("%+v, %v", at, ok)
	}
	if _, ok := Trend(rising[:minPoints-1]); ok {
		t.Error("a trend of too few measurements")
	}
	// The negative control: least squares is moved by the same outliers.
	if slope := leastSquares(rising); math.Abs(slope-10) < 5 {
		t.Errorf("the outliers do not even move least squares: %.1f", slope)
	}
}

func leastSquares(values []float64) float64 {
	var n, x, y, xx, xy float64
	for i, v := range values {
		if !math.IsNaN(v) {
			n, x, y, xx, xy = n+1, x+float64(i), y+v, xx+float64(i*i), xy+float64(i)*v
		}
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// A flat level, independent or persistent, close below its limit, is not forecast to reach it.
// The negative control drops the allowance for persistence.
func TestFlatLevelsAreHardlyEverTrends(t *testing.T) {
	const runs = 2000
	count := func(alike float64, rises func(Line) bool) (n int) {
		r := rand.New(rand.NewPCG(9, uint64(alike*100)))
		for range runs {
			values := make([]float64, 31)
			level := 0.0
			for i := -50; i < len(values); i++ {
				if level = alike*level + r.NormFloat64(); i >= 0 {
					values[i] = 900 + 20*level
				}
			}
			if l, ok := Trend(values); ok && rises(l) {
				n++
			}
		}
		return n
	}
	for _, alike := range []float64{0, 0.5, 0.8} {
		n := count(alike, Line.Rises)
		t.Logf("correlation %.1f: %d of %d flat series look rising", alike, n, runs)
		if n > runs*5/100 {
			t.Errorf("correlation %.1f: %d of %d", alike, n, runs)
		}
	}
}
