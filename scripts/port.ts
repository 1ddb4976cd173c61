/** A port from the environment; refused before anything is started when it is none. Throws an Error that names the variable. */
export function portOf(variable: string, otherwise: number): number {
  const text = process.env[variable] ?? String(otherwise);
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535)
    throw new Error(`${variable} must be a port from 0 to 65535, not "${text}"`);
  return port;
}
