/** The `iss` of this server's own tokens. No other issuer may use this name. */
export const ISSUER = "mintmark";
export const TOKEN_SECONDS = 15 * 60;
