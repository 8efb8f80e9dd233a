package email

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"backstop/internal/notify"
	"backstop/internal/notify/outcome"

	"github.com/wneessen/go-mail"
)

// maxField bounds one field of the text; the attachment has all of it.
const maxField = 500

// compose returns the mail, and those of its lines that are stored. The Message-ID contains the
// notification's id, so that repeats can be recognised.
func compose(m notify.Message, from string, recipients []string) (*mail.Msg, string, error) {
	msg := mail.NewMsg()
	if err := msg.From(from); err != nil {
		return nil, "", fmt.Errorf("from: %w", err)
	}
	if err := msg.To(recipients...); err != nil {
		return nil, "", fmt.Errorf("to: %w", err)
	}
	subject := outcome.OneLine(strings.TrimSpace(m.Type + " " + fieldsOf(m.Body)["order_no"]))
	if n := len(m.More); n > 0 {
		subject = fmt.Sprintf("%d notifications: %s, …", n+1, subject)
	}
	id := m.ID + "@" + from[strings.LastIndex(from, "@")+1:]
	msg.Subject(subject)
	msg.SetMessageIDWithValue(id)
	msg.SetDateWithValue(m.At)
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies

	var text strings.Builder
	for _, part := range append([]notify.Part{{ID: m.ID, Type: m.Type, Body: m.Body}}, m.More...) {
		fields := fieldsOf(part.Body)
		fmt.Fprintf(&text, "%s\n\n", outcome.OneLine(strings.TrimSpace(part.Type+" "+fields["order_no"])))
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			fmt.Fprintf(&text, "%s: %s\n", name, fields[name])
		}
		fmt.Fprintf(&text, "\nid: %s\n\n", part.ID)
		msg.AttachReadSeeker(part.ID+".json", bytes.NewReader(part.Body), mail.WithFileContentType("application/json"))
	}
	text.WriteString("The same id means the same event, sent again.\n")
	msg.SetBodyString(mail.TypeTextPlain, text.String())
	return msg, "To: " + strings.Join(recipients, ", ") + "\nFrom: " + from + "\nSubject: " + subject + "\nMessage-ID: <" + id + ">", nil
}

// fieldsOf returns the fields of the body's data, each on one line.
func fieldsOf(body []byte) map[string]string {
	all, _ := notify.Fields(body) // an unreadable body is attached all the same
	fields := make(map[string]string, len(all))
	for name, value := range all {
		fields[outcome.OneLine(name)] = outcome.Clean(outcome.OneLine(value), maxField)
	}
	return fields
}
