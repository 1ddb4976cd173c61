/**
 * The rule for texts that others read: names, references, metadata, reasons. A hidden character
 * shows nothing, or changes how others are shown, so that two names look alike or a line reads
 * differently: controls, lone surrogates, bidirectional and zero-width characters, fillers, the
 * blank of Braille. Emoji need three of them, which count only within emoji.
 */
const HIDDEN = [
  "[\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u2800]",
  "(?![\\u200d\\ufe0e\\ufe0f])[\\p{Cf}\\p{Default_Ignorable_Code_Point}]",
  "(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f](?!\\u20e3)",
  "(?<![\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d",
  "\\u200d(?!\\p{Extended_Pictographic})",
].join("|");
const ANY_HIDDEN = new RegExp(HIDDEN, "u");
const ALL_HIDDEN = new RegExp(`(?:${HIDDEN})+`, "gu");
/** Nearly all texts. */
const PLAIN = /^[ -~]*$/;
const BREAKS = /[\n\r\t]/g;

/** The rule in words, after "text". */
export const NOT_HIDDEN = "without control, bidirectional, zero-width or other hidden characters";

/** Whether a text has no hidden character. `hasLines` allows line breaks and tabs. */
export function isVisible(text: string, hasLines = false): boolean {
  return PLAIN.test(text) || !ANY_HIDDEN.test(hasLines ? text.replaceAll(BREAKS, " ") : text);
}

/** A text of somebody else on one line, with `instead` for hidden characters. */
export function visible(text: string, instead = " "): string {
  return PLAIN.test(text) ? text : text.replaceAll(ALL_HIDDEN, instead);
}
