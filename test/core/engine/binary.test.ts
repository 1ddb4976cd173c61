import fc from "fast-check";
import { expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../../../core/store/binary.ts";

const edges = [
  0n,
  127n,
  128n,
  2n ** 49n - 1n,
  2n ** 49n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 64n,
  2n ** 256n - 1n,
];

it("whole numbers of any size are read back in order", () => {
  const value = fc.oneof(
    fc.bigInt(0n, 2n ** 256n - 1n),
    fc.bigInt(0n, 2n ** 50n),
    fc.constantFrom(...edges),
  );
  fc.assert(
    fc.property(fc.array(value, { minLength: 1 }), (values) => {
      const writer = new ByteWriter(1).begin();
      for (const one of values) {
        writer.bigVarint(one);
        if (one < 2n ** 64n) writer.varintWords(Number(one >> 32n), Number(one & 0xffff_ffffn));
      }
      const reader = new ByteReader(writer.end().subarray(0, -4), 1);
      for (const one of values) {
        expect(reader.bigVarint()).toBe(one);
        if (one < 2n ** 64n) expect(reader.bigVarint()).toBe(one);
      }
      reader.end();
    }),
  );
});
