import { expect, test, vi } from "vitest";
import { print } from "../../scripts/cli/output.ts";

test("people read whole tokens, programs read units", () => {
  const units = { quantum: "1000000000", decimals: 18 };
  const amounts = { amount: "12500000000", amountDecimal: "12.5", availableBalance: "1" };
  const points = { vaultId: "7", ...amounts, ...units };
  const page = {
    data: [points, { ...points, amount: "5", quantum: "1", decimals: 0 }],
    pagination: { nextCursor: null },
  };
  const share = { to: "0xfe", amount: "5000000000", amountDecimal: "5" };
  const order = { orderId: "o", give: { ...points, symbol: "PTS" }, shares: [share] };
  const COLUMNS = ["orderId", "give.amount", "give.symbol"];
  const written: string[] = [];
  const write = vi
    .spyOn(process.stdout, "write")
    .mockImplementation((text) => written.push(String(text)) > 0);
  try {
    print(page, false, ["vaultId", "amount", "availableBalance"]);
    print({ transferId: "t", transfers: [points] }, false);
    print(page, true);
    print({ transferId: "t", transfers: [points] }, false, ["amount", "failure"]);
    print([order], false, COLUMNS);
    print(order, false, COLUMNS);
  } finally {
    write.mockRestore();
  }
  const [list = "", transfer = "", json = "", narrow = "", orders = "", shown = ""] = written;
  expect(list).toContain(
    "\n      7    12.5       0.000000001\n      7       5                 1\n",
  );
  expect(transfer).toContain("12.5");
  expect(transfer).not.toMatch(/quantum|amountDecimal/);
  expect(JSON.parse(json)).toEqual(page);
  expect(narrow).toBe("transferId  t\n\ntransfers:\namount\n  12.5\n");
  expect(orders).toBe("orderId  give.amount  give.symbol\no               12.5  PTS\n");
  expect(shown).toMatch(/give\.amount +12\.5\n/);
  expect(shown).toMatch(/shares:\nto +amount\n0xfe +5\n$/);
});
