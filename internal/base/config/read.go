package config

import (
	"log/slog"
	"math"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"backstop/internal/base/text"
)

// unit is a type of whole numbers that are written with a unit.
type unit struct {
	noun  string
	parse func(string) (int64, bool)
	write func(int64) string
}

var units = map[reflect.Type]unit{
	reflect.TypeFor[int]():           {"a whole number", parseInt, writeInt},
	reflect.TypeFor[time.Duration](): {"a duration (300s, 15m, 2h)", parseDuration, writeDuration},
	reflect.TypeFor[Bytes]():         {"a size (64KiB, 1MiB)", parseBytes, func(n int64) string { return Bytes(n).String() }},
	reflect.TypeFor[Percent](): {
		"a percentage with at most three decimals (99.5%)", parsePercent,
		func(n int64) string { return Percent(n).String() },
	},
	reflect.TypeFor[Rate](): {"a rate (2000/s)", parseRate, func(n int64) string { return Rate(n).String() }},
}

// nouns describe the values of types without unit and form.
var nouns = map[reflect.Type]string{
	reflect.TypeFor[[]netip.Prefix](): "CIDR ranges separated by commas (10.0.0.0/8,fd00::/8), with no bits set after the prefix length",
	reflect.TypeFor[Waits]():          "1 to 32 waits from 0s to 24h separated by commas (0s,10s,1m)",
	reflect.TypeFor[GroupRoles]():     "group=role separated by commas, each role one of ",
	reflect.TypeFor[TimeOfDay]():      "a time of day as HH:MM, 00:00 to 23:59",
	reflect.TypeFor[*time.Location](): "a zone of the IANA list (Asia/Shanghai, UTC)",
}

// set reads a non-empty text into the field v and returns the part that is not accepted,
// or "".
func (s Setting) set(v reflect.Value, text string) (bad string) {
	if u, ok := units[v.Type()]; ok {
		n, ok := u.parse(text)
		if !ok || n < s.min || n > s.max {
			return text
		}
		v.SetInt(n)
		return ""
	}
	if words, ok := v.Addr().Interface().(*Words); ok {
		*words = pieces(text)
		if i := slices.IndexFunc(*words, func(w string) bool { return !s.form.holds(w) }); i >= 0 {
			return (*words)[i]
		}
		return ""
	}
	if groups, ok := v.Addr().Interface().(*GroupRoles); ok {
		return setGroupRoles(groups, text, s.form.holds)
	}
	if len(s.oneOf) > 0 && !slices.Contains(s.oneOf, text) {
		return text
	}
	switch p := v.Addr().Interface().(type) {
	case *[]netip.Prefix:
		return setPrefixes(p, text)
	case *[]Secret:
		return s.setSecrets(p, text)
	case *Waits:
		return setWaits(p, text)
	case *TimeOfDay:
		return setTimeOfDay(p, text)
	case **time.Location:
		return setLocation(p, text)
	case *slog.Level:
		if p.UnmarshalText([]byte(text)) != nil {
			return text
		}
	case *Secret:
		if !s.form.holds(text) {
			return text
		}
		*p = NewSecret(text)
	case *bool:
		*p = text == "true"
	case *string:
		if len(s.oneOf) == 0 && !s.form.holds(text) {
			return text
		}
		*p = text
	}
	return ""
}

// show is a field's value in the form of an environment variable.
func show(v reflect.Value) string {
	if u, ok := units[v.Type()]; ok {
		return u.write(v.Int())
	}
	switch x := v.Interface().(type) {
	case []netip.Prefix:
		return joined(x)
	case []Secret:
		return joined(x)
	case slog.Level:
		return strings.ToLower(x.String())
	case *time.Location:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	case interface{ String() string }:
		return x.String()
	}
	return v.String()
}

func joined[T interface{ String() string }](list []T) string {
	texts := make([]string, len(list))
	for i, x := range list {
		texts[i] = x.String()
	}
	return strings.Join(texts, ",")
}

func setPrefixes(p *[]netip.Prefix, text string) (bad string) {
	for _, piece := range pieces(text) {
		prefix, err := netip.ParsePrefix(piece)
		if err != nil || prefix.Masked() != prefix || prefix.Addr().Is4In6() {
			return piece
		}
		*p = append(*p, prefix)
	}
	return ""
}

// setSecrets splits a list of URLs. A URL may contain commas (telegram://…?chats=1,2), so
// only a comma before a new scheme is a separator.
func (s Setting) setSecrets(p *[]Secret, text string) (bad string) {
	var urls []string
	for _, word := range strings.Fields(text) {
		for i, piece := range strings.Split(word, ",") {
			switch {
			case piece == "":
			case i > 0 && len(urls) > 0 && !strings.Contains(piece, "://"):
				urls[len(urls)-1] += "," + piece
			default:
				urls = append(urls, piece)
			}
		}
	}
	for _, u := range urls {
		if !s.form.holds(u) {
			return u
		}
		*p = append(*p, NewSecret(u))
	}
	return ""
}

func setTimeOfDay(p *TimeOfDay, text string) (bad string) {
	t, err := time.Parse("15:04", text)
	if err != nil || len(text) != len("15:04") {
		return text
	}
	*p = TimeOfDay{t.Hour(), t.Minute()}
	return ""
}

// setLocation refuses "Local", which may be a different zone on each node.
func setLocation(p **time.Location, text string) (bad string) {
	zone, err := time.LoadLocation(text)
	if err != nil || text == "Local" {
		return text
	}
	*p = zone
	return ""
}

// pieces splits a list at commas and white space.
func pieces(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' })
}

func parseInt(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

func writeInt(n int64) string { return strconv.FormatInt(n, 10) }

func parseDuration(text string) (int64, bool) {
	d, err := time.ParseDuration(text)
	return int64(d), err == nil
}

func writeDuration(n int64) string { return text.Duration(time.Duration(n)) }

// byteUnits are powers of 1024, largest first. "KB" is ambiguous and not accepted.
var byteUnits = []struct {
	name string
	size int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func parseBytes(text string) (int64, bool) {
	for _, u := range byteUnits {
		digits, ok := strings.CutSuffix(text, u.name)
		if !ok {
			continue
		}
		n, ok := parseInt(digits)
		if !ok || n < 0 || n > math.MaxInt64/u.size {
			return 0, false
		}
		return n * u.size, true
	}
	return parseInt(text)
}

func parseRate(text string) (int64, bool) {
	digits, ok := strings.CutSuffix(text, "/s")
	n, isInt := parseInt(digits)
	return n, ok && isInt
}
