package alert

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"backstop/internal/report"
)

// scaleOf is by how much a rule's level is finer than what people write: rates
// are kept in hundredths of a percent, and what waits by a fault in hundredths.
func scaleOf(rule string) float64 {
	if rule == SuccessRate || rule == ErrorRate || rule == OurFault {
		return 100
	}
	return 1
}

// Unit is the unit in which people write a rule's level, "" = a count.
func Unit(rule string) string {
	switch rule {
	case SuccessRate, ErrorRate, SupplierSilent, DatabaseDown, RedisDown, WrongKey, NodesDiffer:
		return "%"
	case AnswerTime, SlowMerchant, ClockSkew:
		return "ms"
	}
	return ""
}

// Write is a level as people write it, without its unit.
func Write(rule string, level int64) string {
	return strconv.FormatFloat(float64(level)/scaleOf(rule), 'f', -1, 64)
}

// maxLevel bounds levels: a day in ms, and more than any queue holds.
const maxLevel = 100_000_000

// longestAttempt is what a merchant may be given at most to answer; a mean or a
// percentile of answers is never above it.
const longestAttempt = 10 * time.Second

// levels are the lowest and the highest level that a rule can read.
func levels(rule string) (lowest, highest int64) {
	switch rule {
	case SuccessRate, ErrorRate:
		return 0, 10_000
	case DatabaseDown, RedisDown:
		return 0, 100
	case AnswerTime, SlowMerchant:
		return 0, longestAttempt.Milliseconds()
	}
	return 0, maxLevel
}

// Limits are the levels among which those of a rule are chosen; nil = any. A
// percentile is read from a histogram, which knows exactly whether it is above one
// of its bounds and can only guess about what lies between them.
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

// Read is Write's inverse. Its error is an ErrRule.
func Read(rule, text string) (int64, error) {
	v, err := strconv.ParseFloat(text, 64)
	v = math.Round(v * scaleOf(rule))
	if err != nil || math.IsNaN(v) || v < 0 || v > maxLevel {
		return 0, fmt.Errorf("%w: %s: a level is a number of 0 or more", ErrRule, rule)
	}
	return int64(v), nil
}
