/** The combining class 9: signs that join two consonants. */
const VIRAMA =
  "\\u094d\\u09cd\\u0a4d\\u0acd\\u0b4d\\u0bcd\\u0c4d\\u0ccd\\u0d3b\\u0d3c\\u0d4d\\u0dca\\u0e3a\\u0eba\\u0f84" +
  "\\u1039\\u103a\\u1714\\u1715\\u1734\\u17d2\\u1a60\\u1b44\\u1baa\\u1bab\\u1bf2\\u1bf3\\u2d7f" +
  "\\ua806\\ua82c\\ua8c4\\ua953\\ua9c0\\uaaf6\\uabed\\u{11046}\\u{110b9}\\u{11133}\\u{11134}\\u{111c0}";
/** Letters of the Arabic script that join the next one: their Joining_Type is D. */
const JOINING =
  "\\u0620\\u0626\\u0628\\u062a-\\u062e\\u0633-\\u063f\\u0641-\\u0647\\u0649\\u064a\\u066e\\u066f" +
  "\\u0678-\\u0687\\u069a-\\u06bf\\u06c1\\u06c2\\u06cc\\u06ce\\u06d0\\u06d1\\u06fa-\\u06fc\\u06ff" +
  "\\u0750-\\u0758\\u075c-\\u076a\\u076d-\\u0770\\u0772\\u0775-\\u0777\\u077a-\\u077f" +
  "\\u08a0-\\u08a9\\u08af\\u08b0\\u08b3-\\u08b8\\u08ba-\\u08c8";
/**
 * The rule for texts that others read: names, references, metadata, reasons. A hidden character
 * shows nothing, or changes how others are shown, so that two names look alike or a line reads
 * differently: controls, lone surrogates, bidirectional and zero-width characters, fillers, the
 * blank of Braille. Emoji need three of them, which count only within emoji. Persian and the
 * scripts of India need the two joiners, which count only where they change how a letter is written
 * (RFC 5892, A.1 and A.2).
 */
const HIDDEN = [
  "[\\p{Cc}\\p{Cs}\\p{Zl}\\p{Zp}\\u2800]",
  "(?![\\u200c\\u200d\\ufe0e\\ufe0f])[\\p{Cf}\\p{Default_Ignorable_Code_Point}]",
  "(?<!\\p{Extended_Pictographic})[\\ufe0e\\ufe0f](?!\\u20e3)",
  `(?<![${VIRAMA}\\p{Extended_Pictographic}\\p{Emoji_Modifier}\\ufe0f])\\u200d`,
  `(?<![${VIRAMA}])\\u200d(?!\\p{Extended_Pictographic})`,
  `(?<![${VIRAMA}])(?<![${JOINING}]\\p{Mn}*)\\u200c`,
  `(?<![${VIRAMA}])\\u200c(?!\\p{Mn}*(?=\\p{L})\\p{Script=Arabic})`,
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
