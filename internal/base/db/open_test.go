package db_test

import (
	"sync"
	"testing"

	"backstop/internal/base/db"
)

// Two commands that start at once in a new folder create one file: the second waits and does
// not fail.
func TestManyOpenANewFileAtOnce(t *testing.T) {
	t.Parallel()
	for range 100 {
		dir := t.TempDir()
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				d, err := db.Open(t.Context(), db.Options{Dir: dir})
				if err != nil {
					t.Error(err)
					return
				}
				defer d.Close()
				if _, err := d.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS other (id BIGINT)"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}
