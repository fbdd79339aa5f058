// An authorisation server that is not ours: `node provider.mjs PORT RESOURCE SCOPE`, in the directory
// where npm has put oidc-provider. It rotates refresh tokens and asks for PKCE.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [port, resource, scope] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const require = createRequire(`${process.cwd()}/package.json`);
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")).href);

const provider = new Provider(issuer, {
  features: {
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => resource,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope,
        audience: resource,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  scopes: ["openid", "offline_access", ...scope.split(" ")],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed("refresh_token"),
  ttl: { AccessToken: 3600, Grant: 3600, Interaction: 3600, Session: 3600, RefreshToken: 3600 },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
