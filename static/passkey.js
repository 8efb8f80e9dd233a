// Passkeys, in browsers that have them: a form that asks for one is shown and sent with the answer, and where
// a code is asked for again, a button gives a passkey instead.
{
  const from = window.PublicKeyCredential;
  const give = async (how, options) => {
    const publicKey = how === "create" ? from.parseCreationOptionsFromJSON(options) : from.parseRequestOptionsFromJSON(options);
    return JSON.stringify(await navigator.credentials[how]({ publicKey }));
  };
  const all = selector => from?.parseCreationOptionsFromJSON ? document.querySelectorAll(selector) : [];
  for (const form of all("form[data-passkey]")) {
    form.hidden = false;
    form.addEventListener("submit", async e => {
      e.preventDefault();
      try {
        form.querySelector("[data-answer]").value = await give(form.dataset.passkey, JSON.parse(form.dataset.options));
        form.submit();
      } catch {
        form.querySelector("[role=alert]").hidden = false;
      }
    });
  }
  for (const button of all("[data-give-passkey]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const row = button.parentElement, code = row.querySelector("[name=code]");
      code.required = false;
      try {
        if (!button.form.reportValidity()) return;
        const asked = await (await fetch("/_/passkey")).json();
        row.querySelector("[data-answer]").value = await give("get", asked.options);
        row.querySelector("[name=passkey_sealed]").value = asked.sealed;
        button.form.requestSubmit();
      } catch {
        row.querySelector("[role=alert]").hidden = false;
      } finally {
        code.required = true;
      }
    });
  }
}
