// Lists of non-negative integers in the alphabet of source maps: base 32 digits, least significant first, the sixth bit
// set where more digits follow. The writer is `push_number` in crates/view/src/embed.rs.

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const DIGITS = new Uint8Array(128);
for (let digit = 0; digit < ALPHABET.length; digit++) DIGITS[ALPHABET.charCodeAt(digit)] = digit;

/** Reads the numbers of a list one after the other. Exact up to 2^53, like every number here. */
export class Numbers {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  get done(): boolean {
    return this.at >= this.text.length;
  }

  next(): number {
    let number = 0;
    // Not shifts: they end at 32 bits.
    for (let place = 1; this.at < this.text.length; place *= 32) {
      const digit = DIGITS[this.text.charCodeAt(this.at++) & 127];
      number += (digit & 31) * place;
      if (digit < 32) return number;
    }
    return number;
  }
}
