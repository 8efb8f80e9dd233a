// Forms for passkeys are shown where the browser has them; its answer is sent with the form.
for (const form of document.querySelectorAll("form[data-passkey]")) {
  const from = window.PublicKeyCredential, how = form.dataset.passkey;
  if (!from?.parseCreationOptionsFromJSON) continue;
  form.hidden = false;
  form.addEventListener("submit", async e => {
    e.preventDefault();
    const options = JSON.parse(form.dataset.options);
    const publicKey = how === "create" ? from.parseCreationOptionsFromJSON(options) : from.parseRequestOptionsFromJSON(options);
    try {
      form.elements.answer.value = JSON.stringify(await navigator.credentials[how]({ publicKey }));
      form.submit();
    } catch {
      form.querySelector("[role=alert]").hidden = false;
    }
  });
}
