package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"backstop/internal/base/seal"
	"backstop/internal/settings"

	"github.com/uptrace/bun"
)

// Draft is what an operator has typed into the form of an object and not applied yet. It outlives
// the session.
type Draft struct {
	Object  settings.Object
	Typed   Typed
	Version int64 // of the settings that the operator saw
	At      int64 // Unix µs
}

// draftRow is a draft as stored: it may contain secrets.
type draftRow struct {
	bun.BaseModel `bun:"table:setting_drafts,alias:sd"`

	OperatorID int64  `bun:"operator_id,pk"`
	Object     string `bun:"object,pk"`
	Sealed     string `bun:"sealed"`
	Version    int64  `bun:"version"`
	At         int64  `bun:"at"`
}

func draftPlace(operator int64, object string) seal.Place {
	return seal.Place{Table: "setting_drafts", Row: strconv.FormatInt(operator, 10) + " " + object, Field: "sealed"}
}

// Drafts stores the drafts of operators.
type Drafts struct{ Env Env }

// draftAge is how long a draft is kept.
const draftAge = 30 * 24 * time.Hour

// Save stores a draft in place of an earlier one of the same object, and deletes old ones of anybody.
func (d Drafts) Save(ctx context.Context, operator int64, draft Draft) error {
	raw, err := json.Marshal(draft.Typed)
	if err != nil {
		return err
	}
	object := draft.Object.String()
	row := draftRow{
		OperatorID: operator, Object: object, Sealed: d.Env.Keys.Seal(draftPlace(operator, object), raw), Version: draft.Version,
		At: d.Env.DB.Now(),
	}
	_, err = d.Env.DB.NewInsert().Model(&row).On("CONFLICT (operator_id, object) DO UPDATE").
		Set("sealed = EXCLUDED.sealed, version = EXCLUDED.version, at = EXCLUDED.at").Exec(ctx)
	if err != nil {
		return fmt.Errorf("store a draft: %w", err)
	}
	if _, err := d.Env.DB.NewDelete().Model((*draftRow)(nil)).Where("at < ?", row.At-draftAge.Microseconds()).Exec(ctx); err != nil {
		return fmt.Errorf("delete old drafts: %w", err)
	}
	return nil
}

// All returns the operator's drafts, newest first. One that cannot be opened here is left out.
func (d Drafts) All(ctx context.Context, operator int64) ([]Draft, error) {
	return d.read(ctx, d.Env.DB.Read.NewSelect().Where("sd.operator_id = ?", operator))
}

// Of returns the operator's draft of an object, or nil.
func (d Drafts) Of(ctx context.Context, operator int64, o settings.Object) (*Draft, error) {
	all, err := d.read(ctx, d.Env.DB.Read.NewSelect().Where("sd.operator_id = ? AND sd.object = ?", operator, o.String()))
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

func (d Drafts) read(ctx context.Context, query *bun.SelectQuery) (all []Draft, err error) {
	var rows []draftRow
	if err := query.Model(&rows).OrderExpr("sd.at DESC").Scan(ctx); err != nil {
		return nil, fmt.Errorf("read drafts: %w", err)
	}
	for _, r := range rows {
		draft := Draft{Version: r.Version, At: r.At}
		plain, err := d.Env.Keys.Open(draftPlace(r.OperatorID, r.Object), r.Sealed)
		_, o, ok := ObjectOf(r.Object)
		if draft.Object = o; ok && err == nil && json.Unmarshal(plain, &draft.Typed) == nil {
			all = append(all, draft)
		}
	}
	return all, nil
}

// Discard deletes the operator's draft of an object.
func (d Drafts) Discard(ctx context.Context, operator int64, o settings.Object) error {
	_, err := d.Env.DB.NewDelete().Model((*draftRow)(nil)).Where("operator_id = ? AND object = ?", operator, o.String()).Exec(ctx)
	if err != nil {
		return fmt.Errorf("delete a draft: %w", err)
	}
	return nil
}
