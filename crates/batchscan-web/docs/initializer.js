// Configures Swagger UI. A separate file: the Content-Security-Policy forbids inline scripts.

// HEAD and OPTIONS work everywhere in the same way. Listed, they would hide the rest.
const withoutHeadAndOptions = () => ({
  statePlugins: {
    spec: {
      wrapActions: {
        updateJsonSpec: (update) => (spec) => {
          for (const path of Object.values(spec.paths ?? {})) {
            delete path.head;
            delete path.options;
          }
          return update(spec);
        },
      },
    },
  },
});

window.ui = SwaggerUIBundle({
  url: new URL("../openapi.json", document.currentScript.src).href,
  plugins: [withoutHeadAndOptions],
  dom_id: "#docs",
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // The validator badge would send a request to another server.
  validatorUrl: null,
  // Do not store tokens.
  persistAuthorization: false,
});

// The sign-in dialog opens scrolled to its last form; most people want the first.
new MutationObserver(() => {
  const dialog = document.querySelector(".dialog-ux:not([data-opened])");
  if (!dialog) return;
  dialog.dataset.opened = "";
  dialog.querySelector("input")?.focus();
  dialog.querySelector(".modal-ux-content").scrollTop = 0;
}).observe(document.querySelector("#docs"), { childList: true, subtree: true });
