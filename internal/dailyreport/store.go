package dailyreport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"backstop/internal/alert"
	"backstop/internal/base/calendar"
	"backstop/internal/base/db"

	"github.com/uptrace/bun"
)

// Report is one stored report.
type Report struct {
	bun.BaseModel `bun:"table:daily_reports,alias:dr"`

	ID      int64   `bun:"id,pk"`
	Day     string  `bun:"day"`  // 2026-11-23
	Zone    string  `bun:"zone"` // of the day
	Figures Figures `bun:"figures,type:text"`
	Mails   string  `bun:"mails"`   // ids of its messages, separated by commas
	MadeAt  int64   `bun:"made_at"` // Unix µs
}

// Messages reads the mails of the report, for each of its recipients.
func (r *Report) Messages(ctx context.Context, q bun.IDB) ([]alert.Message, error) {
	var all []alert.Message
	for _, text := range strings.FieldsFunc(r.Mails, func(c rune) bool { return c == ',' }) {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the report of %s names the mail %q: %w", r.Day, text, err)
		}
		m, err := alert.MessageByID(ctx, q, id)
		if err != nil {
			return nil, err
		}
		if m != nil { // messages are cleaned up before reports
			all = append(all, *m)
		}
	}
	return all, nil
}

// Find reads the report of a day such as 2026-11-23, of the given zone or, if that is empty, the
// newest one of any zone; nil = there is none.
func Find(ctx context.Context, q bun.IDB, day, zone string) (*Report, error) {
	var rows []*Report
	sel := q.NewSelect().Model(&rows).Where("dr.day = ?", day).OrderExpr("dr.id DESC").Limit(1)
	if zone != "" {
		sel = sel.Where("dr.zone = ?", zone)
	}
	if err := sel.Scan(ctx); err != nil {
		return nil, fmt.Errorf("read the report of a day: %w", err)
	}
	if len(rows) == 0 {
		return nil, nil
	}
	return rows[0], nil
}

const (
	// settle is how long after its end a day is counted: the last payments of the day are notified
	// and folded by then.
	settle = 10 * time.Minute
	// maxBack is how many missed days are made up for.
	maxBack = 7
	// elected is how long one node is elected to make reports.
	elected = time.Minute
)

// Mail is a report as a mail.
type Mail struct{ Title, Text, HTML string }

// Keeper makes the reports and hands their mails over for sending.
type Keeper struct {
	DB        *db.DB
	Zone      *time.Location
	Objective float64 // 0 to 1
	Log       *slog.Logger
	// Targets are the names of those that get the mail.
	Targets []string
	// Compose writes the mail.
	Compose func(context.Context, *Report) (Mail, error)

	now func() int64 // Unix µs; nil = the database's, other in tests
}

// Run makes the reports of the days that have ended since the last one, on the elected node, and
// reports whether there are mails to send. After a downtime of several days only the newest report
// is mailed; the others are stored.
func (k *Keeper) Run(ctx context.Context) (mails bool, err error) {
	mine, err := k.DB.Lease(ctx, "daily", elected)
	if err != nil || !mine {
		return false, err
	}
	missing, err := k.missing(ctx)
	if err != nil {
		return false, err
	}
	for i, start := range missing {
		sent, err := k.make(ctx, start, i == len(missing)-1)
		if err != nil {
			return mails, err
		}
		mails = mails || sent
	}
	return mails, nil
}

// missing returns the first moments of the ended days without a report, oldest first.
func (k *Keeper) missing(ctx context.Context) ([]int64, error) {
	now := k.DB.Now()
	if k.now != nil {
		now = k.now()
	}
	today := time.UnixMicro(now).Add(-settle).In(k.Zone)
	midnight := func(back int) time.Time {
		return calendar.DayStart(today, -back)
	}
	var stored []string
	err := k.DB.Read.NewRaw("SELECT day FROM daily_reports WHERE zone = ? AND day >= ?", k.Zone.String(),
		midnight(maxBack).Format(time.DateOnly)).Scan(ctx, &stored)
	if err != nil {
		return nil, fmt.Errorf("read which days have a report: %w", err)
	}
	has := map[string]bool{}
	for _, day := range stored {
		has[day] = true
	}
	if has[midnight(1).Format(time.DateOnly)] {
		return nil, nil // days before it were made with it
	}
	// Nothing can be said about days before the figures begin.
	var first []int64
	if err := k.DB.Read.NewRaw("SELECT start FROM report_orders WHERE span_s = 86400 ORDER BY start LIMIT 1").Scan(ctx,
		&first); err != nil {
		return nil, fmt.Errorf("read the first day of figures: %w", err)
	}
	if len(first) == 0 {
		return nil, nil
	}
	var all []int64
	for back := maxBack; back > 0; back-- {
		start := midnight(back)
		if !has[start.Format(time.DateOnly)] && midnight(back-1).UnixMicro() > first[0] {
			all = append(all, start.UnixMicro())
		}
	}
	return all, nil
}

// IDs writes the ids of mails as Report.Mails has them.
func IDs(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}

// errMade means that another node has made the report.
var errMade = errors.New("the report is made")

// make counts and stores the report of a day with its mails. The database allows one report for
// each day.
func (k *Keeper) make(ctx context.Context, start int64, mail bool) (mails bool, err error) {
	f, err := Read(ctx, k.DB, k.Zone, start, k.Objective)
	if err != nil {
		return false, err
	}
	r := &Report{
		ID: k.DB.NewID(), Day: time.UnixMicro(start).In(k.Zone).Format(time.DateOnly), Zone: k.Zone.String(), Figures: *f,
		MadeAt: f.At,
	}
	var m Mail
	if mail = mail && len(k.Targets) > 0; mail {
		if m, err = k.Compose(ctx, r); err != nil {
			return false, fmt.Errorf("write the report of %s as a mail: %w", r.Day, err)
		}
	}
	err = k.DB.Tx(ctx, func(ctx context.Context, tx db.Tx) error {
		var ids []int64
		if mail {
			if ids, err = alert.PostMail(ctx, tx, k.DB, k.Targets, m.Title, m.Text, m.HTML); err != nil {
				return err
			}
		}
		r.Mails = IDs(ids)
		res, err := tx.NewInsert().Model(r).On("CONFLICT DO NOTHING").Exec(ctx)
		if err != nil {
			return fmt.Errorf("store the report of %s: %w", r.Day, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, errMade)
		}
		return nil
	})
	if errors.Is(err, errMade) {
		return false, nil
	}
	if err == nil {
		k.Log.Info("report of a day", "day", r.Day, "zone", r.Zone, "mails", strings.Count(r.Mails, ",")+min(len(r.Mails), 1))
	}
	return mail && err == nil, err
}
