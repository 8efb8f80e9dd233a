package supplier

import (
	"fmt"
	"strconv"
	"strings"

	"backstop/internal/base/text"
	"backstop/internal/base/textlimit"
)

// Steps are the verification steps of one callback, oldest first. They are stored as text, one
// line each, with tab-separated fields:
//
//	name  µs  code            of a step that passed
//	name  µs  code  !  arg …  of one that failed
type Steps []Step

var (
	escapeField   = strings.NewReplacer(`\`, `\\`, "\t", `\t`, "\n", `\n`)
	unescapeField = strings.NewReplacer(`\\`, `\`, `\t`, "\t", `\n`, "\n")
)

// Text returns the steps in stored form.
func (s Steps) Text() string {
	var b strings.Builder
	field := func(text string) {
		b.WriteByte('\t')
		b.WriteString(escapeField.Replace(text))
	}
	for _, step := range s {
		b.WriteString(escapeField.Replace(step.Name))
		field(strconv.FormatInt(step.TookUS, 10))
		field(step.Code)
		if !step.OK {
			field("!")
		}
		args := step.Args
		if step.Code == "" && step.Detail != "" { // a sentence has no code
			args = []string{step.Detail}
		}
		for _, arg := range args {
			field(arg)
		}
		b.WriteByte('\n')
	}
	return textlimit.Storable(b.String())
}

// Scan reads the steps of a row.
func (s *Steps) Scan(src any) error {
	var raw string
	switch v := src.(type) {
	case string:
		raw = v
	case []byte:
		raw = string(v)
	default:
		return fmt.Errorf("steps of a callback: %T", src)
	}
	*s = nil
	for line := range strings.Lines(raw) {
		step, err := readStep(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return fmt.Errorf("step %d of a callback: %w", len(*s)+1, err)
		}
		*s = append(*s, step)
	}
	return nil
}

func readStep(line string) (step Step, err error) {
	fields := strings.Split(line, "\t")
	if len(fields) < 3 {
		return step, fmt.Errorf("%d fields", len(fields))
	}
	for i := range fields {
		fields[i] = unescapeField.Replace(fields[i])
	}
	if step.TookUS, err = strconv.ParseInt(fields[1], 10, 64); err != nil {
		return step, err
	}
	step.Name, step.Message, step.OK = fields[0], text.Message{Code: fields[2]}, len(fields) == 3 || fields[3] != "!"
	args := fields[3:]
	if !step.OK {
		args = args[1:]
	}
	switch {
	case step.Code == "" && len(args) == 1:
		step.Detail = args[0]
	case len(args) > 0:
		step.Args = args
	}
	return step, nil
}
