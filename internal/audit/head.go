package audit

import (
	"context"
	"fmt"
	"time"

	"backstop/internal/evidence"

	"github.com/uptrace/bun"
)

// SignedHead is the signed end of the chain at some time, to be kept outside the installation:
// a chain that is later rewritten, or cut short and continued, has another hash at this number.
type SignedHead struct {
	Number int64  `json:"number"`
	Hash   string `json:"hash"`
	At     string `json:"at"`
	File   string `json:"-"` // what backstop verify-evidence reads
}

// SignHead signs the end of the chain; nil = there is no act yet.
func (l *Log) SignHead(ctx context.Context, q bun.IDB) (*SignedHead, error) {
	number, hash, err := Head(ctx, q)
	if err != nil || number == 0 {
		return nil, err
	}
	h := &SignedHead{Number: number, Hash: hash, At: time.UnixMicro(l.db.Now()).UTC().Format(time.RFC3339)}
	file, err := evidence.Sign(map[string]any{"audit_head": h}, l.keys)
	if err != nil {
		return nil, fmt.Errorf("sign the end of the audit: %w", err)
	}
	text, err := file.Bytes()
	if err != nil {
		return nil, err
	}
	h.File = string(text[:len(text)-1]) // without the end of the line
	return h, nil
}
