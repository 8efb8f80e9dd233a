package config

import (
	"fmt"
	"io"
	"log/slog"
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

// TimeOfDay is a time of day in Config.Timezone.
type TimeOfDay struct{ Hour, Minute int }

func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d", t.Hour, t.Minute) }

// Waits are consecutive waits.
type Waits []time.Duration

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
