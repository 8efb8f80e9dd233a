package alert

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"backstop/internal/report"
)

// measure says how a rule's levels are stored and displayed.
type measure struct {
	unit    string // displayed unit; "" = a count
	scale   int64  // stored levels per displayed unit
	highest int64  // the lowest is 0
	onOff   bool   // works or does not: limits mean nothing to operators
}

var (
	count        = measure{"", 1, maxLevel, false}
	percent      = measure{"%", 1, maxLevel, false}
	rate         = measure{"%", 100, 10_000, false}
	milliseconds = measure{"ms", 1, maxLevel, false}
	answerTime   = measure{"ms", 1, longestAttempt.Milliseconds(), false}
	onOff        = measure{"%", 1, 100, true}
	unreadable   = measure{"", 1, 100, true}
	waiting      = measure{"", 100, maxLevel, true}
	minutes      = measure{"min", 1, 360, false} // as far as forecasts look ahead
)

// maxLevel bounds levels: a day in ms, and more than any queue holds.
const maxLevel = 100_000_000

// longestAttempt is the longest timeout of an attempt; a mean or percentile of response times
// never exceeds it.
const longestAttempt = 10 * time.Second

func measureOf(rule string) measure {
	for _, d := range defaults {
		if d.Name == rule {
			return d.measure
		}
	}
	return count
}

// Unit returns the unit in which operators write a rule's level; "" = a count.
func Unit(rule string) string { return measureOf(rule).unit }

// Write formats a level for operators, without its unit.
func Write(rule string, level int64) string {
	return strconv.FormatFloat(float64(level)/float64(measureOf(rule).scale), 'f', -1, 64)
}

// Read is the inverse of Write. Its error is an ErrRule.
func Read(rule, text string) (int64, error) {
	v, err := strconv.ParseFloat(text, 64)
	v = math.Round(v * float64(measureOf(rule).scale))
	if err != nil || math.IsNaN(v) || v < 0 || v > maxLevel {
		return 0, fmt.Errorf("%w: %s: enter a number of 0 or more", ErrRule, rule)
	}
	return int64(v), nil
}

// Level formats a level with its unit.
func Level(rule string, v int64) string {
	switch m := measureOf(rule); {
	case m == rate:
		return fmt.Sprintf("%d.%02d %%", v/100, v%100)
	case m.unit == "%":
		return fmt.Sprintf("%d %%", v)
	case m == minutes:
		return fmt.Sprintf("%d min", v)
	case m.unit == "ms":
		return (time.Duration(v) * time.Millisecond).String()
	default:
		return fmt.Sprint(v / m.scale)
	}
}

// Limits returns the levels from which those of a rule must be chosen; nil = any. Percentiles
// come from a histogram, which is exact at its bucket bounds and can only estimate between
// them.
func Limits(rule string) (all []int64) {
	if rule != SlowMerchant {
		return nil
	}
	for _, b := range report.Bounds() {
		if b < longestAttempt {
			all = append(all, b.Milliseconds())
		}
	}
	return all
}
