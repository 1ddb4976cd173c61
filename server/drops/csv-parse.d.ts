/** What we use of csv-parse. Its own types say the same where it is installed. */
declare module "csv-parse" {
  interface CsvOptions {
    readonly bom: boolean;
    readonly columns: (names: string[]) => string[];
    readonly info: boolean;
    readonly max_record_size: number;
    readonly record_delimiter: readonly string[];
    readonly skip_empty_lines: boolean;
    readonly trim: boolean;
  }
  export function parse(options: CsvOptions): import("node:stream").Transform;
  export class CsvError extends Error {
    readonly code: string;
  }
}
