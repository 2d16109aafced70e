// Shows this server's own document; without a validator, which is another host's.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#operations",
  validatorUrl: null,
  deepLinking: true,
});
