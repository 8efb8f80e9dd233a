package inbox

import (
	"context"
	"slices"
	"strings"

	"backstop/internal/access"
	"backstop/internal/act"
	"backstop/internal/base/db"
	"backstop/internal/base/invalid"
	"backstop/internal/base/text"
)

// UnknownError names people whom a note mentions and who do not exist, are disabled, or may not
// see what the note is about. The note is refused, because its author would believe that they
// read it.
type UnknownError struct{ Names []string }

func (e *UnknownError) Error() string { return e.Unwrap().Error() }

var tUnknown = text.Text{
	ZH: "能看到这里的人中没有 @%s：请改正，或在 @ 之后加空格",
	EN: "nobody who may see this has the name @%s: correct it, or put a space after the @",
}

// Unwrap returns the error of the note's field.
func (e *UnknownError) Unwrap() error {
	return invalid.Field("reason", tUnknown, strings.Join(e.Names, ", @"))
}

// Notes delivers notes to the people whom they mention.
type Notes struct {
	DB     *db.DB
	Policy *access.Policy
}

// Deliver returns kinds in which the one with a name also delivers its reason, to those who have
// the permission to see its subject. Errors of the act: *UnknownError.
func (n Notes) Deliver(kinds []act.Kind, name string, see access.Permission) []act.Kind {
	kinds = slices.Clone(kinds)
	for i := range kinds {
		if kinds[i].Name != name {
			continue
		}
		if kinds[i].Do != nil {
			panic("inbox: " + name + " has an effect of its own, which would be lost")
		}
		object := kinds[i].Object
		kinds[i].Do = func(ctx context.Context, tx db.Tx, in act.Input, subjects []act.Subject) ([]act.Outcome, error) {
			outs := make([]act.Outcome, len(subjects))
			for _, s := range subjects {
				if err := n.deliver(ctx, tx, in, see, Message{Kind: Mention, Object: object, ObjectID: s.ID}); err != nil {
					return nil, err
				}
			}
			return outs, nil
		}
	}
	return kinds
}

func (n Notes) deliver(ctx context.Context, tx db.Tx, in act.Input, see access.Permission, m Message) error {
	if !strings.Contains(in.Reason, "@") {
		return nil
	}
	people, err := access.Enabled(ctx, tx)
	if err != nil {
		return err
	}
	ids := map[string]int64{}
	for _, op := range people {
		if n.Policy.Allows(op.Roles, see) {
			ids[op.Name] = op.ID
		}
	}
	names, unknown := Mentions(in.Reason, func(name string) bool { return ids[name] != 0 })
	if len(unknown) > 0 {
		return &UnknownError{unknown}
	}
	if len(names) > MaxMentions {
		return invalid.Field("reason", text.Text{ZH: "最多提及 %d 人", EN: "mention at most %d people"}, MaxMentions)
	}
	_, m.Actor, _ = strings.Cut(in.By.Name, ":")
	m.Text = in.Reason
	for _, name := range names {
		if m.OperatorID = ids[name]; m.OperatorID == in.By.ID {
			continue
		}
		if err := Put(ctx, tx, n.DB, m); err != nil {
			return err
		}
	}
	return nil
}
