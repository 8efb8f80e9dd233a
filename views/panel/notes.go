package panel

import "backstop/internal/base/text"

var tMentionHow = text.Text{ZH: "写 @用户名 可将备注发到同事的收件箱。", EN: "Write @name to send the note to a colleague's inbox."}

var tMentionWho = text.Text{ZH: "可以提到的同事", EN: "Colleagues you can mention"}
