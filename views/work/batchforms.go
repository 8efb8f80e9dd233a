package work

import (
	"strconv"

	"backstop/internal/base/money"
	"backstop/internal/base/text"
	"backstop/internal/batch"
	"backstop/internal/report"
	"backstop/views/panel"
	"backstop/views/ui"

	"github.com/a-h/templ"
)

// batchStart starts a batch, or proposes it where another person has to approve it.
func batchStart(p *ui.Page, d BatchData) templ.Component {
	b := d.Progress.Batch
	send := ui.Act{Icon: "send", Says: actionButton(p, b), Class: "primary", Writes: true}
	if d.Second {
		send.Says = p.T(text.Propose) + " · " + send.Says
	}
	return panel.Body(p, "start-title", tBatchStart, panel.Ask(p, panel.Form{
		Name: "run", Action: string(batchLink(b, "/start")), Key: d.Key,
		Above: []templ.Component{
			panel.Small(p.T(tBatchHow)),
			ui.If(b.Action == "resend", panel.Small(p.T(text.ResendHow))),
			batchLater(p, d),
			ui.If(d.Second, ui.Notice(p, "warn", p.T(tBatchSecond))),
		},
		Below: append(typedFields(p, d.Typed), ui.Button(p, send)),
	}))
}

// typedFields ask to type amounts as they are shown.
func typedFields(p *ui.Page, sums []report.Sum) (all []templ.Component) {
	for _, s := range sums {
		amount := money.Format(s.Minor, s.Currency)
		all = append(all, panel.AmountField(p, panel.Input{
			ID: batch.AmountField + s.Currency, Says: p.T(text.TypeAmount, amount, s.Currency),
			More: templ.Attributes{"data-typed": amount},
		}))
	}
	return all
}

// batchControl pauses, resumes or stops a batch that is running, or changes its rate.
func batchControl(p *ui.Page, d BatchData) templ.Component {
	button := func(class, icon string, label text.Text, part string) templ.Component {
		return ui.Button(p, ui.Act{
			Icon: icon, Label: label, Class: class, Writes: true,
			More: templ.Attributes{"formaction": string(batchLink(d.Progress.Batch, part))},
		})
	}
	turn := button("primary", "refresh-cw", text.Resume, "/resume")
	if d.Progress.State == batch.Running {
		turn = button("", "pause", text.Pause, "/pause")
	}
	return panel.Of(p, "control-title", tBatchControl, panel.Box("body stack", panel.Ask(p, panel.Form{
		Name: "control", Key: d.Key,
		Below: []templ.Component{
			panel.Small(p.T(tBatchStopHow)),
			panel.Box("actions", turn, button("", "ban", tBatchStop, "/stop")),
			panel.InputField(p, panel.Input{
				ID: "rate", Label: tBatchRate, Value: strconv.FormatInt(d.Progress.Rate, 10),
				More: templ.Attributes{"inputmode": "numeric"},
			}),
			button("sm", "", tBatchSetRate, "/rate"),
		},
	})))
}
