package compensation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"backstop/internal/base/db"
)

// Kind is what one kind of compensation does.
type Kind struct {
	Name string
	// Check reads a payload. One that it refuses is dead at once.
	Check func(json.RawMessage) error
	// Run does it once, within the time of ctx. It may run again after it has succeeded,
	// where the result could not be written: it looks first, and leaves alone what is over.
	Run func(context.Context, Item) Result
}

// Class is how a try ended: a Cause, or one of those below.
type Class string

// Classes of tries that ended well.
const (
	OK   Class = "ok"
	Over Class = "over" // there was nothing left to do
)

// Result is how a try ended.
type Result struct {
	Class Class
	// Text says what was found, or went wrong; no secrets.
	Text string
	Call int64 // in supplier_calls; 0 = none
	dead bool
}

// Succeeded means that it is done.
func Succeeded(text string) Result { return Result{Class: OK, Text: text} }

// WasOver means that there was nothing left to do.
func WasOver(text string) Result { return Result{Class: Over, Text: text} }

// WasOvertaken means that something newer is stored, which is never written over: it is
// done.
func WasOvertaken(text string) Result { return Result{Class: Class(Overtaken), Text: text} }

// Later means that it has to be tried again.
func Later(why Cause, text string) Result { return Result{Class: Class(why), Text: text} }

// Died means that no further try can help.
func Died(why Cause, text string) Result { return Result{Class: Class(why), Text: text, dead: true} }

// Failed is Later with an error of the database.
func Failed(err error) Result { return Later(Database, db.ErrorText(err)) }

// WithCall notes the call to the supplier.
func (r Result) WithCall(id int64) Result {
	r.Call = id
	return r
}

// IsDone reports whether nothing is left to do.
func (r Result) IsDone() bool { return r.Class == OK || r.Class == Over || r.Class == Class(Overtaken) }

// ReadPayload reads exactly one JSON value without unknown fields.
func ReadPayload(raw json.RawMessage, p any) error {
	read := json.NewDecoder(bytes.NewReader(raw))
	read.DisallowUnknownFields()
	if err := read.Decode(p); err != nil {
		return fmt.Errorf("read the payload: %w", err)
	}
	if read.Decode(new(any)) != io.EOF {
		return errors.New("read the payload: more than one value")
	}
	return nil
}
