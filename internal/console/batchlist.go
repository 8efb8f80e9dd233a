package console

import (
	"context"

	"backstop/internal/audit"
	"backstop/internal/bulk"
	"backstop/internal/list"

	"github.com/uptrace/bun"
)

// BatchesList declares the list of batches. The rows of one batch may belong to many merchants.
var BatchesList = list.New(list.Spec{
	Name:    "batches",
	Sources: []list.Source{{Table: "batches", Alias: "bt", Key: "id", MerchantColumn: list.NoMerchant}},
	Fields: []list.Field{
		{Word: "action", Column: "action", Values: batchActions},
		{Word: "state", Column: "state", Indexed: true, Values: bulk.Moves.Words()},
		{Word: "maker", Suggest: operatorNames, Match: func(_ context.Context, _ list.Lookup, name string) (list.Match, error) {
			return list.Match{Where: "bt.made_by IN (?)", Args: []any{bun.List(audit.Actors(name))}}, nil
		}},
	},
})

// batchActions are the actions of all batches.
var batchActions = []string{"resend", "query", "rerun", "redrive", "close"}

// Batches reads one page of batches.
func (b *Reader) Batches(ctx context.Context, q list.Query, s list.Slice) (list.Page[bulk.Batch], error) {
	return list.Read(ctx, b.db, q, s, func(x *bulk.Batch) int64 { return x.ID })
}
