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
