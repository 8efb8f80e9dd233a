package dbtest

import (
	"errors"
	"time"

	"backstop/internal/base/db"
)

// maxRepeat bounds how long Repeat repeats.
const maxRepeat = time.Minute

// Repeat calls do again while it loses against other transactions, as a caller does that reads
// "busy", and returns its first other result. Tests of races need it: on a busy machine a lock may
// come later than the program waits for it.
func Repeat(do func() error) error {
	end := time.Now().Add(maxRepeat)
	for {
		err := do()
		if !db.IsConflict(err) && !errors.Is(err, db.ErrBusy) || time.Now().After(end) {
			return err
		}
	}
}
