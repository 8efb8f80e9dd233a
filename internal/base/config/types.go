package config

import (
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// masked stands for a secret wherever one would be printed.
const masked = "***"

// Secret is a text that must not be printed: all usual ways print "***" instead. Reveal is
// the only access to the text, so that a search finds every use. The pointer keeps fmt from
// printing the text through an unexported field, where it calls no methods.
type Secret struct{ text *string }

// NewSecret hides text; an empty one is not set.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{&text}
}

// Reveal returns the text itself.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsSet reports whether there is a text.
func (s Secret) IsSet() bool { return s.text != nil }

// String is "***", or "" if it is not set.
func (s Secret) String() string {
	if s.text == nil {
		return ""
	}
	return masked
}

// Format masks every verb, %#v and %x too.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue masks structured logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalJSON masks JSON.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// MarshalText masks YAML, XML and every other text encoding.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Bytes is a size in bytes.
type Bytes int64

// String writes the size in the largest unit that divides it: "256KiB".
func (b Bytes) String() string {
	for _, u := range byteUnits {
		if b != 0 && int64(b)%u.size == 0 {
			return strconv.FormatInt(int64(b)/u.size, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// Rate is a number of events per second.
type Rate int

func (r Rate) String() string { return strconv.Itoa(int(r)) + "/s" }

// Percent is a share in thousandths of a percent: 99.5% is 99500.
type Percent int64

// percentUnits are the units of a Percent in one percent.
const percentUnits = 1000

// Share returns the share, 0 to 1.
func (p Percent) Share() float64 { return float64(p) / (100 * percentUnits) }

// String writes the share without needless zeros: "99.5%".
func (p Percent) String() string {
	text := fmt.Sprintf("%d.%03d", int64(p)/percentUnits, int64(p)%percentUnits)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// percentForm has at most three places, which a Percent keeps exactly.
var percentForm = regexp.MustCompile(`^([0-9]+)(?:\.([0-9]{1,3}))?%$`)

func parsePercent(text string) (int64, bool) {
	parts := percentForm.FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(parts[1]+(parts[2] + "000")[:3], 10, 64)
	return n, err == nil
}

// TimeOfDay is a time of day in Config.Timezone.
type TimeOfDay struct{ Hour, Minute int }

func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.Hour, t.Minute) }

// Waits are consecutive waits.
type Waits []time.Duration

// Words are some of the words that a setting accepts.
type Words []string

// String writes the words as they are read: "admin,lead".
func (w Words) String() string { return strings.Join(w, ",") }

// maxWait bounds one wait.
const maxWait = 24 * time.Hour

// String writes the waits as they are read: "1m,2m,1h".
func (w Waits) String() string {
	texts := make([]string, len(w))
	for i, d := range w {
		texts[i] = writeDuration(int64(d))
	}
	return strings.Join(texts, ",")
}

// setWaits reads waits that are separated by commas.
func setWaits(p *Waits, text string) (bad string) {
	all := pieces(text)
	if len(all) > maxWaits {
		return all[maxWaits]
	}
	for _, piece := range all {
		d, err := time.ParseDuration(piece)
		if err != nil || d < 0 || d > maxWait {
			return piece
		}
		*p = append(*p, d)
	}
	return ""
}
