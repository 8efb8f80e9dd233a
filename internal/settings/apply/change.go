package apply

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/approval"
	"backstop/internal/audit"
	"backstop/internal/base/db"
	"backstop/internal/base/seal"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Names of the approvals of changes of settings.
const (
	changeAction = "settings.change"
	// ChangeObject is what they are about; its id is the entry: "merchant m1".
	ChangeObject = "setting"
)

// errGone means that a proposal ended without effect, so its values were deleted.
var errGone = fmt.Errorf("the new values were deleted when the proposal ended: apply the file again: %w", approval.ErrEnded)

// change is what two people decide on: the parameters of an approval.
type change struct {
	Changes []changed `json:"changes"`
	// Digest is the digest of the sealed new values. See values.
	Digest string `json:"digest"`
}

// changed is one field. For a secret, New is a digest.
type changed struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// values are the new values of a change: the entry of an apply file, with only the fields that
// wait, and the secrets that the entry refers to.
type values struct {
	// Salt keeps digests of short secrets from being guessed. It is sealed with them.
	Salt    []byte            `json:"salt"`
	Entry   string            `json:"entry"`
	Secrets map[string]string `json:"secrets"` // by the path after file:
}

// required are the fields that an entry of an object must have, with the config that checks need.
var required = []string{"merchant", "code", "kind", "config", "holder", "number"}

// newValues returns the values of the fields of a change that wait. The error lists a secret
// that does not open here.
func newValues(c settings.Change, waits []string) (v values, err error) {
	x := &exporter{object: c.Object, taken: map[string]bool{}, only: append(slices.Clone(required), waits...)}
	text, err := x.entry(c)
	if err != nil {
		return v, err
	}
	v = values{Salt: make([]byte, 16), Entry: string(text), Secrets: map[string]string{}}
	_, _ = rand.Read(v.Salt) // it never fails
	for _, r := range x.refs {
		if r.secret.Plain() == "" {
			return v, fmt.Errorf("%s: %s: the stored secret cannot be decrypted here: give it in the file", c.Object, r.field)
		}
		v.Secrets[r.path] = r.secret.Plain()
	}
	return v, nil
}

// same reports whether both set the same values.
func (v values) same(as values) bool { return v.Entry == as.Entry && maps.Equal(v.Secrets, as.Secrets) }

// sum returns the digest of texts.
func (v values) sum(texts ...string) string {
	h := sha256.New()
	h.Write(v.Salt)
	for _, text := range texts {
		_, _ = h.Write(binary.AppendUvarint(nil, uint64(len(text))))
		_, _ = h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// digest returns the digest of all values.
func (v values) digest() string {
	texts := []string{v.Entry}
	for _, path := range slices.Sorted(maps.Keys(v.Secrets)) {
		texts = append(texts, path, v.Secrets[path])
	}
	return v.sum(texts...)
}

// params describes the change for the people who decide. It contains no secret.
func (v values) params(c settings.Change, waits []string) (json.RawMessage, error) {
	p := change{Changes: []changed{}, Digest: v.digest()}
	for _, d := range c.Diff() {
		if waiting(waits, d) == "" {
			continue
		}
		is := changed{Field: d.Field, Old: d.Old, New: d.New}
		if len(d.Secrets) > 0 {
			var plain []string
			for _, s := range d.Secrets {
				plain = append(plain, s.Plain())
			}
			is.New = "digest " + v.sum(plain...)
			if d.Name == "number" { // of an account: the last digits are shown everywhere
				is.New = d.New + ", " + is.New
			}
		}
		p.Changes = append(p.Changes, is)
	}
	return json.Marshal(p)
}

// waiting returns which of the waiting fields a difference belongs to; "" = none.
func waiting(waits []string, d settings.Difference) string {
	i := slices.IndexFunc(waits, func(at string) bool { return d.Field == at || strings.HasPrefix(d.Field, at+".") })
	if i < 0 {
		return ""
	}
	return waits[i]
}

// Decision is the approval of a change of settings. Proposals are made by Apply, which has the
// values; everywhere else it only decides and carries them out.
func Decision(env Env) act.Kind { return decided{env: env}.kind() }

// decided changes settings as two people decided.
type decided struct {
	env     Env
	pending *values          // values of the proposal that is being made; nil = none
	stored  *settings.Stored // the settings that the pending values change
}

func (x decided) kind() act.Kind {
	return act.Kind{
		Name: changeAction, Object: ChangeObject, Permission: access.ProposeSettings, Params: act.ParamsOf[change](), Load: act.ByID(x.load),
		Do:     act.Each(x.run),
		Second: &act.Second{Approve: access.ApproveSettings, Long: true, Command: true, Reserve: x.hold, Release: x.free},
	}
}

// tables has the tables of the entries, by kind.
var tables = map[string]string{
	"supplier": "suppliers", "merchant": settings.MerchantsTable, "subscription": settings.SubscriptionsTable, "role": "roles",
}

// load finds an entry. Its version is the time of its last change. In a transaction, it also
// locks the settings against changes.
func (x decided) load(ctx context.Context, q bun.IDB, id string) (act.Subject, error) {
	if tx, ok := q.(db.Tx); ok {
		if err := settings.LockVersion(ctx, tx, x.env.DB); err != nil {
			return act.Subject{}, err
		}
	}
	kind, code, _ := strings.Cut(id, " ")
	if kind == settings.PayoutAccountKind {
		return settings.LoadPayoutAccount(ctx, q, id)
	}
	read := q.NewSelect().ColumnExpr("CAST(updated_at AS BIGINT) AS updated_at")
	if id == settings.ApprovalObject.String() {
		read.Table("approval_rules").ColumnExpr("0 AS id")
	} else if tables[kind] != "" {
		read.Table(tables[kind]).Column("id").Where("code = ?", code)
	} else {
		return act.Subject{}, act.ErrNotFound
	}
	var row struct{ UpdatedAt, ID int64 }
	if err := read.Scan(ctx, &row); errors.Is(err, sql.ErrNoRows) {
		return act.Subject{}, act.ErrNotFound
	} else if err != nil {
		return act.Subject{}, fmt.Errorf("read %s: %w", id, err)
	}
	s := act.Subject{ID: id, Version: row.UpdatedAt}
	if kind == "merchant" {
		s.MerchantID = row.ID
	}
	return s, nil
}

// changesTable holds the sealed values of the changes that wait.
const changesTable = "setting_changes"

// changePlace binds sealed values to their approval.
func changePlace(id int64) seal.Place {
	return seal.Place{Table: changesTable, Row: strconv.FormatInt(id, 10), Field: "sealed"}
}

// hold seals the values for the proposal.
func (x decided) hold(ctx context.Context, tx db.Tx, p *act.Proposed, _ act.Subject) error {
	if x.pending == nil {
		return errGone
	}
	if err := x.stored.Confirm(ctx, tx); err != nil {
		return err
	}
	text, err := json.Marshal(x.pending)
	if err != nil {
		return err
	}
	_, err = tx.NewRaw("INSERT INTO setting_changes (id, sealed) VALUES (?, ?)", p.ID, x.env.Keys.Seal(changePlace(p.ID), text)).Exec(ctx)
	if err != nil {
		return fmt.Errorf("store the new values: %w", err)
	}
	return nil
}

// free deletes the values of a proposal that has ended.
func (x decided) free(ctx context.Context, tx db.Tx, p *act.Proposed, _ act.Subject) error {
	if _, err := tx.NewRaw("DELETE FROM setting_changes WHERE id = ?", p.ID).Exec(ctx); err != nil {
		return fmt.Errorf("delete the new values: %w", err)
	}
	return nil
}

// sealed opens the values of a proposal. Errors: errGone.
func (x decided) sealed(ctx context.Context, q bun.IDB, proposal int64) (v values, err error) {
	var text string
	err = q.NewRaw("SELECT sealed FROM setting_changes WHERE id = ?", proposal).Scan(ctx, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return v, errGone
	}
	if err != nil {
		return v, fmt.Errorf("read the new values: %w", err)
	}
	plain, err := x.env.Keys.Open(changePlace(proposal), text)
	if err == nil {
		err = json.Unmarshal(plain, &v)
	}
	if err != nil {
		return v, fmt.Errorf("open the new values: %w", err)
	}
	return v, nil
}

// run makes the change and deletes the values.
func (x decided) run(ctx context.Context, tx db.Tx, in act.Input, s act.Subject) (out act.Outcome, err error) {
	v, err := x.sealed(ctx, tx, in.Proposed.ID)
	if err != nil {
		return out, err
	}
	if v.digest() != in.Params.(change).Digest {
		return out, errors.New("the stored values are not those that were approved: reject the proposal and apply the file again")
	}
	env := x.env.settings()
	if env.Keys, err = settings.UseKeysIn(ctx, tx, env.Keys); err != nil {
		return out, err
	}
	stored, err := settings.ReadIn(ctx, env, tx)
	if err != nil {
		return out, err
	}
	e, err := declare(env, File{Name: in.Proposed.No, Text: []byte(v.Entry)}, &keyFiles{sealed: true, texts: v.Secrets}, stored)
	if err == nil {
		err = e.check()
	}
	if err != nil {
		return out, err
	}
	outcomes, err := stored.Commit(ctx, tx, e.changes, false, audit.Act{
		Actor: in.By.Name, Action: changeAction, Object: ChangeObject, ObjectID: s.ID, Params: map[string]any{"approval": in.Proposed.No},
		Remote: in.By.Remote,
	})
	if err != nil {
		return out, err
	}
	out.Details = map[string]any{"outcome": outcomes[0].String()}
	return out, x.free(ctx, tx, in.Proposed, s)
}
