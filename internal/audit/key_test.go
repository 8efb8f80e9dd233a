package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"backstop/internal/base/db"
	"backstop/internal/base/db/dbtest"
	"backstop/internal/base/seal"
	"backstop/internal/base/seal/sealtest"
	"backstop/internal/evidence"
)

func exec(t *testing.T, d *db.DB, query string, args ...any) {
	t.Helper()
	if _, err := d.NewRaw(query, args...).Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func resend(n int) Act {
	return Act{Actor: "operator:a", Action: "notification.resend", Object: "order", ObjectID: fmt.Sprint("O", n)}
}

// writeOld writes rows with plain hashes and no key.
func writeOld(t *testing.T, d *db.DB, n int) {
	t.Helper()
	for range n {
		number, before, err := Head(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		r := &Row{Number: number + 1, At: d.Now(), Actor: "operator:old", Action: "x", Object: "order", ObjectID: "O", Params: "{}"}
		exec(t, d, "INSERT INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) VALUES (?, ?, ?, ?, ?, ?, ?, '', ?)",
			r.Number, r.At, r.Actor, r.Action, r.Object, r.ObjectID, r.Params, plainHash(r, before))
		exec(t, d, "INSERT INTO settings (name, value) VALUES ('audit_length', ?) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value",
			r.Number)
	}
}

func plainHash(r *Row, before string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d %q %q %q %q %q %q", before, r.Number, r.At, r.Actor, r.Action, r.Object, r.ObjectID,
		r.Params, r.RemoteAddr))
	return hex.EncodeToString(sum[:])
}

// rechainPlainly rebuilds plain hashes from a row on, as someone who can write the table but
// has no key could.
func rechainPlainly(t *testing.T, d *db.DB, from int64) {
	t.Helper()
	var rows []Row
	if err := d.NewSelect().Model(&rows).OrderExpr("au.number").Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := ""
	for i := range rows {
		if r := &rows[i]; r.Number >= from {
			r.Hash = plainHash(r, before)
			exec(t, d, "UPDATE audit SET hash = ?, key_id = '' WHERE number = ?", r.Hash, r.Number)
		}
		before = rows[i].Hash
	}
}

// When the chain was plain SHA-256, anyone who could write a row could rebuild everything after
// it undetected.
func TestWhoCanWriteTheTableCannotMakeTheChainAnew(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, harm string
		from       int64
		want       string
	}{
		{"a row changed", "UPDATE audit SET actor = 'operator:b' WHERE number = 2", 2, "row 2 has no key"},
		{"a row taken out", "DELETE FROM audit WHERE number = 2", 2, "row 2 is missing"},
		{"the first changed", "UPDATE audit SET actor = 'operator:b' WHERE number = 1", 1, "row 1 has no key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				l := New(d, sealtest.Ring(t, 1))
				for n := range 4 {
					writeBy(t, l, resend(n))
				}
				dbtest.UnlockAudit(t, d)
				exec(t, d, c.harm)
				rechainPlainly(t, d, c.from)
				for range 2 {
					if _, broken := verifyBy(t, l); !strings.Contains(broken, c.want) {
						t.Errorf("found %q, want %q", broken, c.want)
					}
					writeBy(t, l, resend(9)) // nor does the next act hide it
				}
			})
		})
	}
}

// raised is what remains of the trigger's sentence on PostgreSQL: messages of triggers may quote rows.
const raised = "SQLSTATE P0001"

func TestNobodyChangesOrDeletesARow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		for n := range 3 {
			write(t, d, resend(n))
		}
		harms := []string{
			"UPDATE audit SET params = '{}' WHERE number = 2", "DELETE FROM audit WHERE number = 3", "DELETE FROM audit",
			"INSERT INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) VALUES (2, 1, 'a', 'b', 'c', 'd', '{}', '', '')" +
				" ON CONFLICT (number) DO UPDATE SET actor = EXCLUDED.actor",
		}
		if d.IsPostgres() {
			harms = append(harms, "TRUNCATE audit")
		} else {
			harms = append(harms,
				"INSERT OR REPLACE INTO audit (number, at, actor, action, object, object_id, params, remote_addr, hash) VALUES (2, 1, 'a', 'b', 'c', 'd', '{}', '', '')")
		}
		for _, harm := range harms {
			_, err := d.NewRaw(harm).Exec(t.Context())
			if err == nil || !strings.Contains(err.Error(), "neither changed nor deleted") && !strings.Contains(err.Error(), raised) {
				t.Errorf("%s: %v", harm, err)
			}
		}
		if rows, broken := verify(t, d); rows != 3 || broken != "" {
			t.Errorf("%d rows, %s", rows, broken)
		}
	})
}

// Whoever can write the table can remove the keys of all rows.
func TestAChainWithoutAKeyIsBroken(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		writeOld(t, d, 2)
		write(t, d, resend(1))
		if rows, broken := verify(t, d); rows != 3 || broken != "row 1 has no key: it was changed or inserted by hand; row 2 has no key: it was changed or inserted by hand" {
			t.Errorf("%d rows, %q", rows, broken)
		}
	})
}

func TestVerifySaysWhichKeyItNeeds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		old, next := New(d, sealtest.Ring(t, 1)), New(d, sealtest.Ring(t, 2, 1))
		writeBy(t, old, resend(1))
		writeBy(t, old, resend(2))
		writeBy(t, next, resend(3))
		if _, broken := verifyBy(t, next); broken != "" {
			t.Errorf("with both keys: %q", broken)
		}
		if _, broken := verifyBy(t, New(d, new(seal.Keyring))); broken != "key needed: rows 1 to 2 were written under master key "+
			sealtest.Ring(t, 1).ID()+
			", which is not available: set BACKSTOP_MASTER_KEY or BACKSTOP_MASTER_KEY_FILE; key needed: row 3 was written under master key "+sealtest.Ring(t, 2).ID()+
			", which is not available: set BACKSTOP_MASTER_KEY or BACKSTOP_MASTER_KEY_FILE" {
			t.Errorf("without a key: %q", broken)
		}
		if _, broken := verifyBy(t, New(d, sealtest.Ring(t, 2))); !strings.HasPrefix(broken, "key needed: rows 1 to 2 were written") ||
			strings.Contains(broken, "row 3") {
			t.Errorf("without the older key: %q", broken)
		}
		retired, err := sealtest.Ring(t, 2).WithRetired(sealtest.Ring(t, 2, 1).Retire())
		if err != nil {
			t.Fatal(err)
		}
		if _, broken := verifyBy(t, New(d, retired)); broken != "" {
			t.Errorf("with the older key retired: %q", broken)
		}
		err = d.Tx(t.Context(), func(ctx context.Context, tx db.Tx) error { return New(d, new(seal.Keyring)).Write(ctx, tx, resend(4)) })
		if err == nil || !strings.Contains(err.Error(), "no master key") {
			t.Errorf("an act without a key: %v", err)
		}
		dbtest.UnlockAudit(t, d)
		exec(t, d, "DELETE FROM audit WHERE number = 2")
		if _, broken := verifyBy(t, New(d, new(seal.Keyring))); !strings.Contains(broken, "row 2 is missing") {
			t.Errorf("a gap is seen without a key too: %q", broken)
		}
	})
}

func TestTheSignedHeadProvesACutEnd(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		l := New(d, sealtest.Ring(t, 1))
		if h, err := l.SignHead(t.Context(), d); h != nil || err != nil {
			t.Errorf("of nothing: %+v, %v", h, err)
		}
		for n := range 4 {
			writeBy(t, l, resend(n))
		}
		h, err := l.SignHead(t.Context(), d)
		if err != nil || h.Number != 4 || strings.Contains(h.File, "\n") {
			t.Fatalf("%+v, %v", h, err)
		}
		file, err := evidence.Check([]byte(h.File), sealtest.Ring(t, 1).SigningKeys()[0].Public)
		if err != nil {
			t.Fatal(err)
		}
		var says struct {
			Head SignedHead `json:"audit_head"`
		}
		if err := json.Unmarshal(file.Evidence, &says); err != nil || says.Head.Number != 4 || says.Head.Hash != h.Hash ||
			says.Head.At != h.At {
			t.Errorf("%s, %v", file.Evidence, err)
		}
		// Rows are cut and the stored length is adjusted: the chain verifies, the signed head
		// does not.
		dbtest.UnlockAudit(t, d)
		exec(t, d, "DELETE FROM audit WHERE number > 2")
		exec(t, d, "UPDATE settings SET value = 2 WHERE name = 'audit_length'")
		if _, broken := verifyBy(t, l); broken != "" {
			t.Errorf("the chain alone finds %q", broken)
		}
		writeBy(t, l, resend(7))
		writeBy(t, l, resend(8))
		if number, hash, err := Head(t.Context(), d); err != nil || number != 4 || hash == h.Hash {
			t.Errorf("row %d has the hash of the head again: %v", number, err)
		}
	})
}
