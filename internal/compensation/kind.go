package compensation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"backstop/internal/base/db"
)

// Kind defines one kind of compensation.
type Kind struct {
	Name string
	// Check validates a payload. An item with an invalid one is dead at once.
	Check func(json.RawMessage) error
	// Run makes one try, within the deadline of ctx. It may run again after it has succeeded,
	// if its result could not be written, so it must check first and leave alone what is over.
	Run func(context.Context, Item) Result
}

// Class is how a try ended: a Cause, or OK or Over.
type Class string

// Classes of successful tries.
const (
	OK   Class = "ok"
	Over Class = "over" // there was nothing left to do
)

// Result is the result of a try.
type Result struct {
	Class Class
	// Text says what was found or went wrong; no secrets.
	Text string
	Call int64 // in supplier_calls; 0 = none
	dead bool
	wait time.Duration // see Again
}

// Succeeded means that the work was done.
func Succeeded(text string) Result { return Result{Class: OK, Text: text} }

// AlreadyDone means that there was nothing left to do.
func AlreadyDone(text string) Result { return Result{Class: Over, Text: text} }

// Later means that it must be tried again.
func Later(why Cause, text string) Result { return Result{Class: Class(why), Text: text} }

// DeadLetter means that no further try can help.
func DeadLetter(why Cause, text string) Result {
	return Result{Class: Class(why), Text: text, dead: true}
}

// Again replaces the schedule's wait and uses up none of its tries. It is for kinds with waits of
// their own, such as until a supplier may be queried again.
func (r Result) Again(wait time.Duration) Result {
	r.wait = max(wait, time.Second)
	return r
}

// Failed is Later with an error of the database.
func Failed(err error) Result { return Later(Database, db.ErrorText(err)) }

// WithCall adds the id of the call to the supplier.
func (r Result) WithCall(id int64) Result {
	r.Call = id
	return r
}

// IsDone reports whether nothing is left to do.
func (r Result) IsDone() bool { return r.Class == OK || r.Class == Over }

// ReadPayload parses exactly one JSON value without unknown fields.
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
