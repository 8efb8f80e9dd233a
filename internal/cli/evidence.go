package cli

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"backstop/internal/app"
	"backstop/internal/audit"
	"backstop/internal/evidence"
)

type verifyEvidenceCmd struct {
	File string `arg:"" type:"existingfile" help:"The signed file, as exported by the console."`
	Key  string `help:"Public key that must have signed it, as the installation publishes it at /evidence-keys." placeholder:"BASE64"`
}

// Run works without an installation: any recipient of the file can check it.
func (v *verifyEvidenceCmd) Run(std streams) error {
	var trusted ed25519.PublicKey
	if v.Key != "" {
		key, err := base64.StdEncoding.DecodeString(v.Key)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return fmt.Errorf("%w: --key must be %d bytes as base64", app.ErrUsage, ed25519.PublicKeySize)
		}
		trusted = key
	}
	text, err := os.ReadFile(v.File)
	if err != nil {
		return err
	}
	f, err := evidence.Check(text, trusted)
	if err != nil {
		return err
	}
	var content struct {
		ExportedAt string          `json:"exported_at"`
		ExportedBy string          `json:"exported_by"`
		AuditHead  json.RawMessage `json:"audit_head"` // an object in a file of the audit, a string in a file of an order
		Order      struct {
			OrderNo string `json:"order_no"`
		} `json:"order"`
	}
	if err := json.Unmarshal(f.Evidence, &content); err != nil {
		return errors.New("the file is intact, but has an unknown form: use a newer version of this program")
	}
	var h audit.SignedHead
	if json.Unmarshal(content.AuditHead, &h) == nil && h.Number > 0 {
		fmt.Fprintf(std.out, "intact and signed: at %s row %d of the audit had the hash %s\n", h.At, h.Number, h.Hash)
	} else {
		fmt.Fprintf(std.out, "intact and signed: order %q, exported %s by %q\n", content.Order.OrderNo, content.ExportedAt,
			content.ExportedBy)
	}
	fmt.Fprintf(std.out, "sha256 %s\nkey %s %s\n", f.SHA256, f.Signature.KeyID, f.Signature.PublicKey)
	if trusted == nil {
		fmt.Fprintln(std.out, "compare the key with the one published at /evidence-keys, or pass that one with --key")
	}
	return nil
}
