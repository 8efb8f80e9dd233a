package panel

import "testing"

// What a document has is shown as on other pages; links out of the page are left out.
func TestADocumentIsRenderedAsOtherPages(t *testing.T) {
	t.Parallel()
	got := Markdown("# Title\n\n## One `two`\n\ntext **bold** [here](#one-two) [there](other.zh-CN.md#three) [away](docs.md#four) [`a` way](https://x.test) `<b>` <i>\n\n<script>x</script>\n\n"+
		"| h | i |\n|---|---|\n| 1 | a \\| b |\n\n```sh\nx | y\n```\n", "manual-title", func(document string) bool { return document == "other.zh-CN.md" })
	const want = `<h2 id="one-two">One <code>two</code></h2>
<p>text <b>bold</b> <a href="#one-two">here</a> <a href="#three">there</a> away <code>a</code> way <code>&lt;b&gt;</code> <!-- raw HTML omitted --></p>
<!-- raw HTML omitted -->
<div class="table-wrap" tabindex="0" role="group" aria-labelledby="manual-title"><table>
<thead>
<tr>
<th scope="col">h</th>
<th scope="col">i</th>
</tr>
</thead>
<tbody>
<tr>
<td class="wrap">1</td>
<td class="wrap">a | b</td>
</tr>
</tbody>
</table></div>
<pre class="code wrap" tabindex="0">x | y</pre>
`
	if string(got) != want {
		t.Error(got)
	}
}
