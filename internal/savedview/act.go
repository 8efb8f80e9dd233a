package savedview

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"

	"github.com/uptrace/bun"
)

// Audit names of the acts. An act is recorded if others see its effect: the view is shared, or
// was.
const (
	SaveAct    = "view.save"
	ChangeAct  = "view.change"
	DeleteAct  = "view.delete"
	RestoreAct = "view.restore"
	WatchAct   = "view.watch"
)

// ActObject is the object name of views in the audit.
const ActObject = "view"

// save is what SaveAct saves.
type save struct {
	List   string `json:"list"`
	Name   string `json:"name"`
	Query  string `json:"query"`
	Shared bool   `json:"shared"`
	Watch  bool   `json:"watch"`
}

// change is what ChangeAct changes; nil = stays.
type change struct {
	Name   *string `json:"name"`
	Shared *bool   `json:"shared"`
}

// watch says whether WatchAct begins or ends an alert.
type watch struct {
	On bool `json:"on"`
}

// Kinds returns the acts on the view Ref.Row. Whoever may share views may also change and delete
// those that others share: they belong to all. Errors: ErrFull, ErrTaken.
func (v *Views) Kinds() []act.Kind {
	kind := func(name string, params act.Params, do func(context.Context, db.Tx, act.Input, *View) (act.Outcome,
		error),
	) act.Kind {
		return act.Kind{
			Name: name, Object: ActObject, Permission: access.ViewOverview, NoReason: true, Params: params, Load: load,
			Do: func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
				outs := make([]act.Outcome, len(subjects))
				for i, s := range subjects {
					var err error
					if outs[i], err = do(ctx, tx, in, s.Value.(*View)); err != nil {
						return nil, err
					}
				}
				return outs, nil
			},
		}
	}
	saving := kind(SaveAct, act.ParamsOf[save](), v.save)
	saving.Load = func(_ context.Context, _ bun.IDB, refs []act.Ref) ([]act.Subject, error) {
		return []act.Subject{{ID: refs[0].ID, Value: (*View)(nil)}}, nil // the list
	}
	return []act.Kind{
		saving, kind(ChangeAct, act.ParamsOf[change](), v.change),
		kind(DeleteAct, act.Params{}, v.remove), kind(RestoreAct, act.Params{}, v.restore),
		kind(WatchAct, act.ParamsOf[watch](), v.watch),
	}
}

// ID returns a view's id as displayed.
func ID(id int64) string { return strconv.FormatInt(id, 10) }

// load reads views, deleted ones too.
func load(ctx context.Context, q bun.IDB, refs []act.Ref) ([]act.Subject, error) {
	rows, err := act.Rows[View](ctx, q, refs)
	if err != nil {
		return nil, err
	}
	subjects := make([]act.Subject, len(rows))
	for i := range rows {
		subjects[i] = act.Subject{Row: rows[i].ID, ID: ID(rows[i].ID), Value: &rows[i]}
	}
	return subjects, nil
}

func (v *Views) save(ctx context.Context, tx db.Tx, in act.Input, _ *View) (act.Outcome, error) {
	p := in.Params.(save)
	name, err := checkName(p.Name)
	if err != nil {
		return act.Outcome{}, err
	}
	if _, ok := v.Lists[p.List]; !ok {
		return act.Outcome{}, act.ErrNotFound
	}
	if _, err := url.ParseQuery(p.Query); err != nil || len(p.Query) > maxQuery {
		return act.Outcome{}, invalid.Field("query", text.Text{ZH: "筛选条件最多 %d 字节", EN: "use a filter of at most %d bytes"}, maxQuery)
	}
	now := v.DB.Now()
	row := &View{
		ID: v.DB.NewID(), OwnerID: in.By.ID, List: p.List, Name: name, Query: p.Query, Shared: p.Shared, CreatedAt: now,
		UpdatedAt: now,
	}
	if err := v.may(in.By, row, p.Shared); err != nil {
		return act.Outcome{}, err
	}
	if err := v.room(ctx, tx, row); err != nil {
		return act.Outcome{}, err
	}
	if _, err := tx.NewInsert().Model(row).Exec(ctx); err != nil {
		return act.Outcome{}, taken(err)
	}
	if p.Watch {
		if err := v.begin(ctx, tx, in.By.ID, row); err != nil {
			return act.Outcome{}, err
		}
	}
	out := act.Outcome{SkipAudit: !row.Shared, Details: details(row)}
	out.Details["id"] = ID(row.ID)
	return out, nil
}

func (v *Views) change(ctx context.Context, tx db.Tx, in act.Input, row *View) (act.Outcome, error) {
	p, was := in.Params.(change), *row
	row.WasName = ""
	if p.Name != nil {
		name, err := checkName(*p.Name)
		if err != nil {
			return act.Outcome{}, err
		}
		if name != row.Name {
			row.WasName, row.Name = row.Name, name
		}
	}
	if p.Shared != nil {
		row.Shared = *p.Shared
	}
	if row.DeletedAt != nil {
		return act.Outcome{}, act.ErrNotFound
	}
	if err := v.may(in.By, &was, was.Shared || row.Shared); err != nil {
		return act.Outcome{}, err
	}
	if row.Shared && !was.Shared {
		if err := v.room(ctx, tx, row); err != nil {
			return act.Outcome{}, err
		}
	}
	if err := v.put(ctx, tx, row, &was); err != nil {
		return act.Outcome{}, err
	}
	if was.Shared && !row.Shared { // others no longer see it
		if _, err := tx.NewRaw("DELETE FROM view_watches WHERE view_id = ? AND operator_id <> ?", row.ID,
			row.OwnerID).Exec(ctx); err != nil {
			return act.Outcome{}, fmt.Errorf("end the alerts of a view: %w", err)
		}
	}
	out := act.Outcome{SkipAudit: !was.Shared && !row.Shared, Details: details(row)}
	if was.Name != row.Name {
		out.Details["was"] = was.Name
	}
	return out, nil
}

func (v *Views) remove(ctx context.Context, tx db.Tx, in act.Input, row *View) (act.Outcome, error) {
	if row.DeletedAt != nil {
		return act.Outcome{}, act.ErrNotFound
	}
	if err := v.may(in.By, row, row.Shared); err != nil {
		return act.Outcome{}, err
	}
	was, now := *row, v.DB.Now()
	row.DeletedAt = &now
	return act.Outcome{SkipAudit: !row.Shared, Details: details(row)}, v.put(ctx, tx, row, &was)
}

func (v *Views) restore(ctx context.Context, tx db.Tx, in act.Input, row *View) (act.Outcome, error) {
	if row.DeletedAt == nil || *row.DeletedAt < v.DB.Now()-keptDeleted {
		return act.Outcome{}, act.ErrNotFound
	}
	if err := v.may(in.By, row, row.Shared); err != nil {
		return act.Outcome{}, err
	}
	if err := v.room(ctx, tx, row); err != nil {
		return act.Outcome{}, err
	}
	was := *row
	row.DeletedAt = nil
	return act.Outcome{SkipAudit: !row.Shared, Details: details(row)}, v.put(ctx, tx, row, &was)
}

// watch begins or ends the actor's own alert.
func (v *Views) watch(ctx context.Context, tx db.Tx, in act.Input, row *View) (act.Outcome, error) {
	if row.DeletedAt != nil {
		return act.Outcome{}, act.ErrNotFound
	}
	if err := v.may(in.By, row, false); err != nil {
		return act.Outcome{}, err
	}
	if in.Params.(watch).On {
		return act.Outcome{SkipAudit: true}, v.begin(ctx, tx, in.By.ID, row)
	}
	_, err := tx.NewRaw("DELETE FROM view_watches WHERE view_id = ? AND operator_id = ?", row.ID, in.By.ID).Exec(ctx)
	return act.Outcome{SkipAudit: true}, err
}

// may checks that the actor sees the view and its list, and, to change what others see, may share
// views. Errors: act.ErrNotFound, *act.Denied.
func (v *Views) may(by act.Actor, row *View, share bool) error {
	l, ok := v.Lists[row.List]
	if by.ID == 0 || row.OwnerID != by.ID && !row.Shared || !ok {
		return act.ErrNotFound
	}
	for _, p := range []access.Permission{l.Permission, access.ShareViews} {
		if (p == l.Permission || share) && !v.Policy.Allows(by.Roles, p) {
			return &act.Denied{Permission: p, Roles: v.Policy.RolesWith(p)}
		}
	}
	return nil
}

// room checks that one more view fits. It locks the owner, so that two at once are counted, and
// for a shared one the first operator, as everybody who shares does.
func (v *Views) room(ctx context.Context, tx db.Tx, row *View) error {
	first := ""
	if row.Shared {
		first = " OR id = (SELECT min(id) FROM operators)"
	}
	var locked []int64
	if err := tx.NewRaw("SELECT id FROM operators WHERE id = ?"+first+" ORDER BY id"+v.DB.ForUpdateText(), row.OwnerID).Scan(ctx,
		&locked); err != nil {
		return fmt.Errorf("lock the owner of a view: %w", err)
	}
	var own, shared int
	err := tx.NewRaw("SELECT count(*) FROM views WHERE owner_id = ? AND list = ? AND deleted_at IS NULL AND id <> ?", row.OwnerID, row.List,
		row.ID).Scan(ctx, &own)
	if err == nil && row.Shared {
		err = tx.NewRaw("SELECT count(*) FROM views WHERE list = ? AND shared AND deleted_at IS NULL AND id <> ?", row.List,
			row.ID).Scan(ctx, &shared)
	}
	if err != nil {
		return fmt.Errorf("count views: %w", err)
	}
	if own >= MaxOwn || shared >= maxShared {
		return ErrFull
	}
	return nil
}

// put stores a changed view, unless somebody else changed it meanwhile.
func (v *Views) put(ctx context.Context, tx db.Tx, row, was *View) error {
	row.UpdatedAt = max(v.DB.Now(), was.UpdatedAt+1)
	res, err := tx.NewRaw(
		"UPDATE views SET name = ?, was_name = ?, shared = ?, deleted_at = ?, updated_at = ? WHERE id = ? AND updated_at = ?",
		row.Name, row.WasName, row.Shared, row.DeletedAt, row.UpdatedAt, row.ID, was.UpdatedAt).Exec(ctx)
	if err != nil {
		return taken(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return act.ErrChanged
	}
	return nil
}

// begin alerts an operator of the rows that appear from now on.
func (v *Views) begin(ctx context.Context, tx db.Tx, operator int64, row *View) error {
	if !v.Lists[row.List].Alerts() {
		return invalid.Field("watch", text.Text{ZH: "这个列表没有提醒", EN: "there are no alerts on this list"})
	}
	now := v.DB.Now()
	_, err := tx.NewRaw(
		"INSERT INTO view_watches (view_id, operator_id, newest, notified_at, created_at) VALUES (?, ?, ?, 0, ?) ON CONFLICT DO NOTHING",
		row.ID, operator, db.IDAt(now), now).Exec(ctx)
	if err != nil {
		return fmt.Errorf("begin the alert of a view: %w", err)
	}
	return nil
}

func taken(err error) error {
	if db.IsUnique(err) {
		return ErrTaken
	}
	return fmt.Errorf("store a view: %w", err)
}

// details are what the audit records.
func details(row *View) map[string]any {
	return map[string]any{"list": row.List, "name": row.Name, "filter": row.Query, "shared": row.Shared}
}

// checkName returns a name as it will be stored. Errors: *act.FieldError.
func checkName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if n := utf8.RuneCountInString(name); n < 1 || n > MaxName || !utf8.ValidString(name) ||
		strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
		return "", invalid.Field("name", text.Text{ZH: "请用 1 到 %d 个字的名称", EN: "use a name of 1 to %d characters"}, MaxName)
	}
	return name, nil
}
