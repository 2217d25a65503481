// Shows the document of the service that this page came from. A file of its own: the page runs no inline script.
const document_url = new URL("../openapi.json", document.currentScript.src).href;

window.ui = SwaggerUIBundle({
  url: document_url,
  dom_id: "#docs",
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // The badge would ask a server elsewhere.
  validatorUrl: null,
  // Tokens are gone with the page.
  persistAuthorization: false,
});

// The dialog would open at its last form, which is for the auth endpoints alone; most people want the first.
new MutationObserver(() => {
  const dialog = document.querySelector(".dialog-ux:not([data-opened])");
  if (!dialog) return;
  dialog.dataset.opened = "";
  dialog.querySelector("input")?.focus();
  dialog.querySelector(".modal-ux-content").scrollTop = 0;
}).observe(document.querySelector("#docs"), { childList: true, subtree: true });
