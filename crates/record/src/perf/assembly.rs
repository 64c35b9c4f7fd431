//! A BPF program while it is written: instructions, and jumps to labels that come later.

use std::os::fd::BorrowedFd;

use super::bpf::{CONTEXT, Function, Instruction, Jump, RESULT, Register, STACK};

/// A place in a program. Jumps lead forward only, so every program ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label(usize);

/// Instructions, and the jumps among them whose targets are not placed yet.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    code: Vec<Instruction>,
    places: Vec<Option<usize>>,
    jumps: Vec<(usize, Label)>,
}

impl Assembly {
    /// Appends instructions.
    pub fn push(&mut self, code: impl IntoIterator<Item = Instruction>) {
        self.code.extend(code);
    }

    /// A label that is placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.places[label.0] = Some(self.code.len());
    }

    /// Jumps to a label if a register compares so to a number.
    pub fn jump_if(&mut self, register: Register, jump: Jump, number: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.code.push(Instruction::jump_if(register, jump, number));
    }

    /// Jumps to a label if a register compares so to another.
    pub fn jump_if_to(&mut self, register: Register, jump: Jump, other: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.code.push(Instruction::jump_if_to(register, jump, other));
    }

    /// Jumps to a label.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.code.push(Instruction::jump());
    }

    /// The finished program.
    pub fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let to = self.places[label.0].expect("every label is placed");
            self.code[at].set_offset((to - at - 1) as i16);
        }
        self.code
    }
}

/// The start of every program: returns 0 unless the current process is a member. Keeps the context.
pub(super) fn unless_member_leave(members: BorrowedFd<'_>) -> Vec<Instruction> {
    let mut program = vec![
        Instruction::copy(CONTEXT, 1),
        Instruction::call(Function::CurrentPidTgid),
        Instruction::shift_right(RESULT, 32),
        Instruction::store_u32(STACK, -4, RESULT),
    ];
    program.extend(Instruction::map(1, members));
    program.extend([
        Instruction::copy(2, STACK),
        Instruction::add(2, -4),
        Instruction::call(Function::MapLookup),
        Instruction::skip_unless_zero(RESULT, 2),
        Instruction::set(RESULT, 0),
        Instruction::exit(),
    ]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_where_their_labels_are_placed() {
        let mut program = Assembly::default();
        let end = program.label();
        program.jump_if(0, Jump::Equal, 0, end);
        program.push([Instruction::set(0, 1)]);
        program.jump(end);
        program.push([Instruction::set(0, 2)]);
        program.place(end);
        program.push([Instruction::exit()]);
        let code = program.finish();
        let expected = |mut instruction: Instruction, offset| {
            instruction.set_offset(offset);
            instruction
        };
        assert_eq!(code[0], expected(Instruction::jump_if(0, Jump::Equal, 0), 3));
        assert_eq!(code[2], expected(Instruction::jump(), 1));
    }
}
